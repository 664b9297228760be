#!/usr/bin/python3
"""Golden values of whole training steps of the GPT-2 of gpt2.py: other data in every step, gradients clipped.

Writes two files beside this one, each with the losses, the gradient norms before clipping and the parameters after ten
steps, as float32:

    gpt2-clipped.bin   in double precision; a step is 4 micro-batches of 2 sequences whose gradients add up
    gpt2-bf16.bin      the same training, a step's 8 sequences at once, in PyTorch's bf16: forward and backward use bf16
                       copies of float32 masters, the bf16 gradients are clipped and applied in float32

The second also holds `noise`: how far its parameters are from those of the first (root of the sum of squares over all
that count), which is what training in bf16 costs PyTorch. In bf16 another version or processor may round otherwise; the
file is from PyTorch 2.15. Initial parameters and tokens are not stored; see gpt2.py.

    tests/golden/gpt2_steps.py
"""
import math
import pathlib
import sys
import torch

sys.dont_write_bytecode = True
import gpt2

CONFIG = dict(L=2, C=32, H=2, V=61, T=16, B=8, tied=True)
MICRO_BATCHES = 4
CLIP = 0.92


def batches(c):
    """Ids and targets [B, T] of each step: one long sequence of random numbers."""
    every = dict(c, B=c["B"] * gpt2.STEPS)
    return zip(*(gpt2.tokens(every, seed).split(c["B"]) for seed in (1, 2)))


def fused_loss_of(c, p, ids, targets):
    """The same as gpt2.loss_of by PyTorch's own operators, which round once each in bf16; the loss in float32."""
    F = torch.nn.functional

    def linear(x, name):
        return F.linear(x, p[name + ".weight"].T, p[name + ".bias"])

    x = F.embedding(ids, p["transformer.wte.weight"]) + p["transformer.wpe.weight"][: c["T"]]
    for i in range(c["L"]):
        h = f"transformer.h.{i}."
        qkv = linear(gpt2.norm(x, p, h + "ln_1"), h + "attn.c_attn")
        q, k, v = (t.unflatten(2, (c["H"], -1)).transpose(1, 2) for t in qkv.split(c["C"], dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + linear(y, h + "attn.c_proj")
        y = F.gelu(linear(gpt2.norm(x, p, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh")
        x = x + linear(y, h + "mlp.c_proj")
    logits = F.linear(gpt2.norm(x, p, "transformer.ln_f"), p["transformer.wte.weight"])
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(c, p, gradients):
    """`gradients` leaves those of a step in p's .grad and returns its loss."""
    optimizer = gpt2.adamw(p)
    losses, norms = [], []
    for ids, targets in batches(c):
        optimizer.zero_grad()
        losses.append(gradients(c, p, ids, targets))
        norms.append(torch.nn.utils.clip_grad_norm_(p.values(), CLIP).item())
        optimizer.step()
    return losses, norms


def in_micro_batches(c, p, ids, targets):
    total = 0
    for part in zip(ids.chunk(MICRO_BATCHES), targets.chunk(MICRO_BATCHES)):
        loss = gpt2.loss_of(c, p, *part) / MICRO_BATCHES
        loss.backward()
        total += loss.item()
    return total


def in_bf16(c, p, ids, targets):
    copies = {name: t.detach().bfloat16().requires_grad_() for name, t in p.items()}
    loss = fused_loss_of(c, copies, ids, targets)
    loss.backward()
    for name, t in p.items():
        t.grad = copies[name].grad.float()
    return loss.item()


def distance(a, b):
    """Over all parameters but the biases of keys, whose gradients are nothing but rounding: softmax cannot see them."""
    total = 0
    for name in a:
        difference = (a[name].double() - b[name].double()).detach()
        if name.endswith("c_attn.bias"):
            query, _, value = difference.chunk(3)
            difference = torch.cat((query, value))
        total += (difference ** 2).sum().item()
    return math.sqrt(total)


def write(path, c, p, losses, norms, micro_batches, noise):
    with open(path, "wb") as f:
        f.write(("config %d %d %d %d %d %d %d\n" %
                 tuple(c[k] for k in ("L", "C", "H", "V", "T", "B", "tied"))).encode())
        f.write(f"micro_batches {micro_batches}\nclip {CLIP:.17g}\nnoise {noise:.17g}\n".encode())
        f.write(("losses " + " ".join("%.17g" % x for x in losses) + "\n").encode())
        f.write(("norms " + " ".join("%.17g" % x for x in norms) + "\n").encode())
        for name, t in p.items():
            f.write(f"tensor {name} {t.numel()}\n".encode())
        f.write(b"data\n")
        for t in p.values():
            f.write(t.detach().numpy().astype("<f4").tobytes())


def main():
    torch.set_num_threads(1)  # how many there are changes how bf16 rounds
    here = pathlib.Path(__file__).parent
    start, exact = gpt2.parameters(CONFIG), gpt2.parameters(CONFIG)
    ids, targets = next(batches(CONFIG))
    fused, plain = (f(CONFIG, start, ids, targets).item() for f in (fused_loss_of, gpt2.loss_of))
    assert abs(fused - plain) < 1e-12, "the two ways to write the model differ"
    losses, norms = train(CONFIG, exact, in_micro_batches)
    assert any(n > CLIP for n in norms) and any(n < CLIP for n in norms), norms
    write(here / "gpt2-clipped.bin", CONFIG, exact, losses, norms, MICRO_BATCHES, 0)
    print("double", *("%.4f/%.4f" % pair for pair in zip(losses, norms)))

    masters = {name: t.detach().float().requires_grad_() for name, t in start.items()}
    losses, norms = train(CONFIG, masters, in_bf16)
    noise = distance(masters, exact)
    write(here / "gpt2-bf16.bin", CONFIG, masters, losses, norms, 1, noise)
    print("bf16  ", *("%.4f/%.4f" % pair for pair in zip(losses, norms)))
    print("moved %g, bf16 from double %g" % (distance(exact, start), noise))


if __name__ == "__main__":
    main()
