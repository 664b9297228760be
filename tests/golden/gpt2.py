#!/usr/bin/python3
"""Golden values of a small GPT-2, written by hand in PyTorch (Debian's python3-torch is enough), in double precision.

Writes gpt2-tied.bin and gpt2-untied.bin beside this file: the loss, the gradients of the first step and the parameters
after ten steps of torch.optim.AdamW, as float32. Initial parameters and tokens are not stored: they come from the same
counter-based random
numbers as src/base/hash.c. Linear weights are [in, out], as in Hugging Face's checkpoints.

    tests/golden/gpt2.py
"""
import math
import pathlib
import numpy
import torch

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
STEPS = 10


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def random_bits(seed, counter):
    return mix((mix((seed + GOLDEN) & MASK) + (counter + 1) * GOLDEN) & MASK)


def uniform(seed, count):
    """Multiples of 2^-26 in [-1/8, 1/8): exact in float32."""
    values = [((random_bits(seed, i) >> 40) - (1 << 23)) / (1 << 26) for i in range(count)]
    return numpy.array(values, dtype=numpy.float32)


def shapes(c):
    C, V, T = c["C"], c["V"], c["T"]
    yield "transformer.wte.weight", (V, C)
    yield "transformer.wpe.weight", (T, C)
    for i in range(c["L"]):
        h = f"transformer.h.{i}."
        yield h + "ln_1.weight", (C,)
        yield h + "ln_1.bias", (C,)
        yield h + "attn.c_attn.weight", (C, 3 * C)
        yield h + "attn.c_attn.bias", (3 * C,)
        yield h + "attn.c_proj.weight", (C, C)
        yield h + "attn.c_proj.bias", (C,)
        yield h + "ln_2.weight", (C,)
        yield h + "ln_2.bias", (C,)
        yield h + "mlp.c_fc.weight", (C, 4 * C)
        yield h + "mlp.c_fc.bias", (4 * C,)
        yield h + "mlp.c_proj.weight", (4 * C, C)
        yield h + "mlp.c_proj.bias", (C,)
    yield "transformer.ln_f.weight", (C,)
    yield "transformer.ln_f.bias", (C,)
    if not c["tied"]:
        yield "lm_head.weight", (V, C)


def parameters(c):
    made = {}
    for index, (name, shape) in enumerate(shapes(c)):
        values = uniform(1000 + index, math.prod(shape))
        if ".ln_" in name and name.endswith("weight"):
            values = numpy.float32(1) + values
        made[name] = torch.tensor(values.astype(numpy.float64).reshape(shape), requires_grad=True)
    return made


def tokens(c, seed):
    ids = [random_bits(seed, i) % c["V"] for i in range(c["B"] * c["T"])]
    return torch.tensor(ids).reshape(c["B"], c["T"])


def norm(x, p, name):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], p[name + ".weight"], p[name + ".bias"], 1e-5)


def linear(x, p, name):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def attention(qkv, heads):
    B, T, C = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    q, k, v = (t.reshape(B, T, heads, C // heads).transpose(1, 2) for t in qkv.split(C, dim=2))
    scores = q @ k.transpose(2, 3) / math.sqrt(C // heads)
    scores = scores.masked_fill(torch.triu(torch.ones(T, T, dtype=torch.bool), 1), -math.inf)
    return (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(B, T, C)


def loss_of(c, p, ids, targets):
    x = p["transformer.wte.weight"][ids] + p["transformer.wpe.weight"][: c["T"]]
    for i in range(c["L"]):
        h = f"transformer.h.{i}."
        y = attention(linear(norm(x, p, h + "ln_1"), p, h + "attn.c_attn"), c["H"])
        x = x + linear(y, p, h + "attn.c_proj")
        y = gelu(linear(norm(x, p, h + "ln_2"), p, h + "mlp.c_fc"))
        x = x + linear(y, p, h + "mlp.c_proj")
    x = norm(x, p, "transformer.ln_f")
    logits = x @ p["transformer.wte.weight" if c["tied"] else "lm_head.weight"].T
    return torch.nn.functional.cross_entropy(logits.reshape(-1, c["V"]), targets.reshape(-1))


def adamw(p):
    """Decay on matrices only, of which biases of experts are none."""
    decays = {name: t.ndim >= 2 and not name.endswith("bias") for name, t in p.items()}
    groups = [{"params": [t for name, t in p.items() if decays[name]], "weight_decay": 0.1},
              {"params": [t for name, t in p.items() if not decays[name]], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)


def train(c):
    p = parameters(c)
    ids, targets = tokens(c, 1), tokens(c, 2)
    optimizer = adamw(p)
    losses, grads = [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(c, p, ids, targets)
        loss.backward()
        losses.append(loss.item())
        grads = grads or {name: t.grad.clone() for name, t in p.items()}
        optimizer.step()
    return losses, grads, p


def write(path, c):
    losses, grads, after = train(c)
    with open(path, "wb") as f:
        f.write(("config %d %d %d %d %d %d %d\n" %
                 tuple(c[k] for k in ("L", "C", "H", "V", "T", "B", "tied"))).encode())
        f.write(("losses " + " ".join("%.17g" % x for x in losses) + "\n").encode())
        for name, t in grads.items():
            f.write(f"tensor {name} {t.numel()}\n".encode())
        f.write(b"data\n")
        for name in grads:
            for t in (grads[name], after[name]):
                f.write(t.detach().numpy().astype("<f4").tobytes())


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    write(here / "gpt2-tied.bin", dict(L=2, C=32, H=2, V=61, T=16, B=2, tied=True))
    write(here / "gpt2-untied.bin", dict(L=2, C=16, H=2, V=61, T=16, B=2, tied=False))
