"""A GPT-2 in plain PyTorch, the peer of bench/step and bench/gpu_peer: step_torch.py '{"layers": ...}' trains it on
random tokens, and prints one JSON object with the seconds of every step.

Keys: layers, width, heads, vocabulary, batch, seq, steps, threads, dtype ("fp32", or "bf16" by autocast), for
transformers' OLMoE experts (how many, those of a token, their width); and, beside
their defaults, device ("cpu", or "cuda") and mode: "eager", "compiled" by torch.compile, or "offload": FSDP2 of one
rank whose parameters, gradients and optimizer live on the host. AdamW with decay on matrices, gradients clipped to a
global norm of 1, as autohete trains by default."""
import json
import math
import sys
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.fc, self.out = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, seq, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, seq, width))
        return x + self.out(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))


class Model(torch.nn.Module):
    def __init__(self, job):
        super().__init__()
        width = job["width"]
        self.token = torch.nn.Embedding(job["vocabulary"], width)
        self.position = torch.nn.Embedding(job["seq"], width)
        self.blocks = torch.nn.ModuleList(Block(width, job["heads"]) for _ in range(job["layers"]))
        self.norm = torch.nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deep = name.endswith(("proj.weight", "out.weight"))
                torch.nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * job["layers"]) if deep else 1))
            elif name.endswith("bias"):
                torch.nn.init.zeros_(parameter)

    def forward(self, ids, targets):
        x = self.token(ids) + self.position.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class Experts(torch.nn.Module):
    """OLMoE by transformers, with the attention and the experts that it chooses by itself."""

    def __init__(self, job):
        super().__init__()
        from transformers import OlmoeConfig, OlmoeForCausalLM
        experts, picks, inner = job["experts"]
        self.model = OlmoeForCausalLM(OlmoeConfig(
            vocab_size=job["vocabulary"], hidden_size=job["width"], num_hidden_layers=job["layers"],
            num_attention_heads=job["heads"], num_key_value_heads=job["heads"], max_position_embeddings=job["seq"],
            intermediate_size=inner, num_experts=experts, num_experts_per_tok=picks, pad_token_id=None,
            use_cache=False))

    def forward(self, ids, targets):
        logits = self.model(input_ids=ids).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def optimizer_of(model):
    """AdamW, fused where this PyTorch can; and whether it is."""
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    settings = {"lr": 3e-4, "betas": (0.9, 0.95), "eps": 1e-8}
    try:
        return torch.optim.AdamW(groups, fused=True, **settings), True
    except (RuntimeError, TypeError):
        return torch.optim.AdamW(groups, **settings), False


def offloaded(model):
    """The model sharded over one rank, its states on the host, fetched block by block in bf16."""
    import torch.distributed as dist
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
    dist.init_process_group("cpu:gloo,cuda:nccl", store=dist.HashStore(), rank=0, world_size=1)
    torch.cuda.set_device(0)
    how = {"offload_policy": CPUOffloadPolicy(pin_memory=True),
           "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)}
    for block in model.blocks:
        fully_shard(block, **how)
    return fully_shard(model, **how)


def prepared(job):
    """The model as the mode wants it, where it trains."""
    model, mode = (Experts if "experts" in job else Model)(job), job.get("mode", "eager")
    if mode == "offload":
        return offloaded(model)
    model = model.to(job.get("device", "cpu"))
    return torch.compile(model) if mode == "compiled" else model


def main():
    job = json.loads(sys.argv[1])
    device = job.get("device", "cpu")
    torch.set_num_threads(job["threads"])
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    model = prepared(job)
    optimizer, fused = optimizer_of(model)
    seconds = []
    for _ in range(job["steps"]):
        ids, targets = torch.randint(job["vocabulary"], (2, job["batch"], job["seq"]))
        start = time.perf_counter()
        ids, targets = ids.to(device), targets.to(device)
        with torch.autocast(device, torch.bfloat16, enabled=job["dtype"] == "bf16" and job.get("mode") != "offload"):
            loss = model(ids, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        value = loss.item()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    found = {"seconds": seconds, "loss": value, "torch": torch.__version__, "fused": fused}
    if "experts" in job:
        import transformers
        found["transformers"] = transformers.__version__
    if device == "cuda":
        found["device_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(found))


main()
