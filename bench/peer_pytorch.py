#!/usr/bin/python3
"""One training step of GPT-2 124M (fp32, AdamW) on this CPU: AutoHete against PyTorch, in one run, rounds interleaved.

    bench/peer_pytorch.py [--rounds N] [--threads N] [--budget 1500MiB] [--program build/release/autohete]

PyTorch runs in a process of its own with the settings that make Debian's build fast (its OpenBLAS misdetects recent processors;
untuned it is several times slower, which would be no fair peer). Prints medians and the ratio."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time

CONFIG = dict(model_type="gpt2", vocab_size=50257, n_positions=1024, n_embd=768, n_layer=12, n_head=12)
BATCH, SEQ, STEPS = 4, 256, 6
TUNED = dict(OPENBLAS_CORETYPE="SkylakeX", OMP_WAIT_POLICY="passive", ATEN_CPU_CAPABILITY="avx512",
             MALLOC_MMAP_THRESHOLD_="4294967296", MALLOC_TRIM_THRESHOLD_="17179869184", MALLOC_TOP_PAD_="268435456")


def torch_model(torch):
    """GPT-2 with torch's own layers; the same arithmetic as the model file above."""
    nn, f = torch.nn, torch.nn.functional
    c, heads = CONFIG["n_embd"], CONFIG["n_head"]

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.ln_2 = nn.LayerNorm(c), nn.LayerNorm(c)
            self.qkv, self.proj = nn.Linear(c, 3 * c), nn.Linear(c, c)
            self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
            self.register_buffer("mask", torch.tril(torch.ones(SEQ, SEQ)) == 0, persistent=False)

        def forward(self, x):
            b, t, _ = x.shape
            q, k, v = (y.view(b, t, heads, c // heads).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(c, 2))
            score = (q @ k.transpose(2, 3) * (c // heads) ** -0.5).masked_fill(self.mask, float("-inf"))
            x = x + self.proj((score.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
            h = self.up(self.ln_2(x))
            h = 0.5 * h * (1 + torch.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))
            return x + self.down(h)

    class Gpt(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(CONFIG["vocab_size"], c), nn.Embedding(CONFIG["n_positions"], c)
            self.blocks, self.ln_f = nn.ModuleList(Block() for _ in range(CONFIG["n_layer"])), nn.LayerNorm(c)

        def forward(self, ids, targets):
            x = self.wte(ids) + self.wpe(torch.arange(SEQ))
            for block in self.blocks:
                x = block(x)
            logits = self.ln_f(x) @ self.wte.weight.t()
            return f.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))

    return Gpt()


def torch_steps(threads):
    """Runs in the child process: prints the seconds of each step as JSON."""
    import torch
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)
    model = torch_model(torch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    seconds = []
    for _ in range(STEPS):
        ids = torch.randint(0, CONFIG["vocab_size"], (BATCH, SEQ))
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=False)
        model(ids, ids.roll(-1, 1)).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    print(json.dumps(seconds[2:]))


def run_torch(threads):
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), **TUNED)
    out = subprocess.run([sys.executable, __file__, "--child", "--threads", str(threads)], env=env, check=True,
                         capture_output=True, text=True).stdout
    return statistics.median(json.loads(out.splitlines()[-1]))


def run_autohete(args, folder, plan):
    command = [args.program, "train", "--model", f"{folder}/model.json", "--data", f"{folder}/tokens.bin", "--device", "cpu",
               "--threads", str(args.threads), "--batch", str(BATCH), "--seq", str(SEQ), "--steps", str(STEPS + 2),
               "--val-batches", "1", "--json"] + plan
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return json.loads(out.splitlines()[-1])


def write_inputs(folder):
    with open(f"{folder}/model.json", "w") as to:
        json.dump(CONFIG, to)
    count = 40000
    tokens = [(i * 2654435761 >> 8) % CONFIG["vocab_size"] for i in range(count)]
    with open(f"{folder}/tokens.bin", "wb") as to:
        to.write(struct.pack("<256i", 20240520, 1, count, *[0] * 253))
        to.write(struct.pack(f"<{count}H", *tokens))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--budget", default="1500MiB")
    parser.add_argument("--program", default="build/release/autohete")
    parser.add_argument("--child", action="store_true")
    args = parser.parse_args()
    if args.child:
        return torch_steps(args.threads)
    rows = {"torch": [], "resident": [], "budget": []}
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(folder)
        for _ in range(args.rounds):
            rows["torch"].append(run_torch(args.threads))
            resident = run_autohete(args, folder, ["--plan", "resident"])
            budget = run_autohete(args, folder, ["--device-memory", args.budget])
            rows["resident"].append(resident["step_ns_median"] / 1e9)
            rows["budget"].append(budget["step_ns_median"] / 1e9)
    print(f"GPT-2 124M, fp32, batch {BATCH} x {SEQ} tokens, {args.threads} threads, {args.rounds} rounds, median seconds per step")
    base = statistics.median(rows["torch"])
    names = {"torch": "PyTorch, tuned", "resident": f"AutoHete, resident ({resident['device_peak_bytes_used'] >> 20} MiB)",
             "budget": f"AutoHete, {args.budget}"}
    for key, name in names.items():
        median = statistics.median(rows[key])
        print(f"  {name:32s} {median:7.3f} s  {base / median:5.2f} x PyTorch's speed")
    plan = budget["plan"]
    print(f"  plan under {args.budget}: c={plan['c']} p={plan['p']} o={plan['o']}, embedding on "
          f"{'host' if plan['embedding_on_host'] else 'device'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
