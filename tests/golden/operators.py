#!/usr/bin/python3
"""Golden values of operators, those of Llama and its like among them, written by hand in PyTorch (Debian's
python3-torch is enough), in double precision, with the conventions of Hugging Face's models (LlamaRMSNorm,
rotate_half, repeat_kv).

Writes operators.bin beside this file. A line "case NAME OPERATOR" with the attributes of ATTRIBUTES opens each case;
a line "tensor NAME SHAPE" follows for every input, output and gradient (dy is the gradient of the result that comes
in); behind the line "data" all values, as float32, in that order. Inputs are exact in float32, outputs rounded once.

    tests/golden/operators.py
"""
import math
import pathlib
import torch


ATTRIBUTES = dict(heads=0, kv_heads=0, theta=0.0, dims=0, eps=0.0, factor=0.0, low=0.0, high=0.0, original=0, by_head=0,
                  window=0, first=0, offset=0.0, scale=0.0, ramp=0, magnitude=0.0, cap=0.0, limit=0.0)


def rmsnorm(a, x, weight):
    rows = x.unflatten(-1, (-1, weight.shape[0]))
    return ((weight + a["offset"]) * (rows * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + a["eps"]))).flatten(-2)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def stretched(a, inverse):
    """As _compute_linear_scaling_rope_parameters() and its like of llama3 and yarn in transformers."""
    if not a["factor"]:
        return inverse
    if a["ramp"]:
        part = ((torch.arange(len(inverse)) - a["low"]) / (a["high"] - a["low"])).clamp(0, 1)
        return inverse * (1 - part) + inverse / a["factor"] * part
    if not a["high"]:
        return inverse / a["factor"]
    wavelength = 2 * math.pi / inverse
    low, high = a["original"] / a["low"], a["original"] / a["high"]
    smooth = (a["original"] / wavelength - a["low"]) / (a["high"] - a["low"])
    between = (1 - smooth) * inverse / a["factor"] + smooth * inverse
    return torch.where(wavelength > low, inverse / a["factor"], torch.where(wavelength < high, inverse, between))


def rotary(a, x):
    if a["by_head"]:
        x = x.reshape(*x.shape[:2], a["heads"], 3, -1)
        apart = dict(a, by_head=0)
        q, k = (rotary(apart, x[..., i, :].flatten(2)).unflatten(2, (a["heads"], -1)) for i in (0, 1))
        return torch.stack((q, k, x[..., 2, :]), dim=3).flatten(2)
    x = x.reshape(*x.shape[:2], a["heads"], -1)
    dims = a["dims"] or x.shape[-1]
    inverse = 1.0 / a["theta"] ** (torch.arange(0, dims, 2, dtype=torch.float64) / dims)
    angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float64), stretched(a, inverse))
    angles = torch.cat((angles, angles), dim=-1)[None, :, None]
    turned, rest = x[..., :dims], x[..., dims:]
    turned = (turned * angles.cos() + rotate_half(turned) * angles.sin()) * (a["magnitude"] or 1)
    return torch.cat((turned, rest), dim=-1).flatten(2)


def silu_mul(a, gate, up):
    return torch.nn.functional.silu(gate) * up


def gelu_mul(a, gate, up):
    return gelu(a, gate) * up


def silu_mul_halves(a, x):
    return silu_mul(a, *x.chunk(2, -1))


def swiglu_clamped(a, x):  # as GptOssExperts._apply_gate() of transformers
    gate, up = x.chunk(2, -1)
    gate, up = gate.clamp(max=a["limit"]), up.clamp(min=-a["limit"], max=a["limit"])
    return (up + 1) * (gate * torch.sigmoid(gate * a["scale"]))


def gate_rows(a, x, gate):
    return torch.sigmoid(gate) * x


def scale(a, x):
    return x * a["scale"]


def attention_qkv(a, q, k, v, sinks=None):
    B, T, H, KV = q.shape[0], q.shape[1], a["heads"], a["kv_heads"]
    q, k, v = (t.reshape(B, T, n, -1).transpose(1, 2) for t, n in ((q, H), (k, KV), (v, KV)))
    k, v = (t.repeat_interleave(H // KV, dim=1) for t in (k, v))
    scores = q @ k.transpose(2, 3) * (a["scale"] or 1 / math.sqrt(q.shape[-1]))
    scores = a["cap"] * torch.tanh(scores / a["cap"]) if a["cap"] else scores
    behind = torch.arange(T)[:, None] - torch.arange(T)
    scores = scores.masked_fill((behind < 0) | (behind >= (a["window"] or T)), -math.inf)
    if sinks is not None:  # as eager_attention_forward() of transformers' gpt_oss
        scores = torch.cat((scores, sinks.reshape(1, -1, 1, 1).expand(B, -1, T, 1)), -1)
    return (torch.softmax(scores, -1)[..., :T] @ v).transpose(1, 2).reshape(B, T, -1)


def attention(a, qkv):
    size = qkv.shape[-1] // a["heads"] // 3
    order = (a["heads"], 3, size) if a["by_head"] else (3, a["heads"], size)
    q, k, v = qkv.unflatten(2, order).unbind(3 if a["by_head"] else 2)
    return attention_qkv(dict(a, kv_heads=a["heads"]), *(t.flatten(2) for t in (q, k, v)))


def add_position(a, x, table):
    return x + table[a["first"]:a["first"] + x.shape[1]]


def layernorm(a, x, weight, bias=None):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, a["eps"])


def linear(a, x, weight, bias=None):
    return x @ weight if bias is None else x @ weight + bias


def gelu(a, x):
    return torch.nn.functional.gelu(x, approximate="tanh")


def gelu_erf(a, x):
    return torch.nn.functional.gelu(x)


def wide(head, T):
    return dict(q=(1, T, 2 * head), k=(1, T, head), v=(1, T, head))


CASES = [
    ("layernorm", layernorm, dict(eps=1e-5), dict(x=(2, 3, 19), weight=(19,), bias=(19,))),
    ("layernorm_no_bias", layernorm, dict(eps=1e-3), dict(x=(3, 37), weight=(37,))),
    ("linear", linear, dict(), dict(x=(1, 3, 7), weight=(7, 5), bias=(5,))),
    ("linear_no_bias", linear, dict(), dict(x=(3, 9), weight=(9, 17))),
    ("gelu", gelu, dict(), dict(x=(3, 23))),
    ("attention_64", attention_qkv, dict(heads=2, kv_heads=1), wide(64, 5)),
    ("attention_80", attention_qkv, dict(heads=2, kv_heads=1), wide(80, 3)),
    ("attention_96", attention_qkv, dict(heads=2, kv_heads=1), wide(96, 3)),
    ("attention_128", attention_qkv, dict(heads=2, kv_heads=1), wide(128, 3)),
    ("attention_1", attention_qkv, dict(heads=2, kv_heads=1), wide(8, 1)),
    ("rmsnorm", rmsnorm, dict(eps=1e-5), dict(x=(2, 3, 19), weight=(19,))),
    ("rmsnorm_small", rmsnorm, dict(eps=1e-1), dict(x=(3, 5), weight=(5,))),
    ("rotary", rotary, dict(heads=3, theta=1e4), dict(x=(1, 7, 3 * 6))),
    ("rotary_partial", rotary, dict(heads=2, theta=500.0, dims=4), dict(x=(2, 5, 2 * 7))),
    ("silu_mul", silu_mul, dict(), dict(gate=(3, 23), up=(3, 23))),
    ("attention_mha", attention_qkv, dict(heads=2, kv_heads=2), dict(q=(1, 5, 10), k=(1, 5, 10), v=(1, 5, 10))),
    ("attention_gqa", attention_qkv, dict(heads=4, kv_heads=2), dict(q=(1, 7, 12), k=(1, 7, 6), v=(1, 7, 6))),
    ("attention_mqa", attention_qkv, dict(heads=3, kv_heads=1), dict(q=(2, 3, 15), k=(2, 3, 5), v=(2, 3, 5))),
    ("gelu_erf", gelu_erf, dict(), dict(x=(3, 23))),
    ("rmsnorm_heads", rmsnorm, dict(eps=1e-5), dict(x=(1, 3, 20), weight=(5,))),
    ("rotary_linear", rotary, dict(heads=2, theta=1e4, factor=3.0), dict(x=(1, 7, 2 * 6))),
    ("rotary_llama3", rotary, dict(heads=1, theta=100.0, factor=8.0, low=1.0, high=4.0, original=64),
     dict(x=(1, 9, 8))),
    ("rotary_by_head", rotary, dict(heads=2, theta=1e3, dims=2, by_head=1), dict(x=(1, 5, 2 * 3 * 5))),
    ("attention_by_head", attention, dict(heads=2, by_head=1), dict(qkv=(1, 5, 2 * 3 * 6))),
    ("attention_window", attention_qkv, dict(heads=4, kv_heads=2, window=3),
     dict(q=(1, 9, 12), k=(1, 9, 6), v=(1, 9, 6))),
    ("position_first", add_position, dict(first=2), dict(x=(2, 3, 5), table=(7, 5))),
    ("gelu_mul", gelu_mul, dict(), dict(gate=(3, 23), up=(3, 23))),
    ("scale", scale, dict(scale=0.375), dict(x=(3, 23))),
    ("rmsnorm_offset", rmsnorm, dict(eps=1e-5, offset=1.0), dict(x=(2, 3, 19), weight=(19,))),
    ("attention_scaled", attention_qkv, dict(heads=4, kv_heads=2, scale=0.75),
     dict(q=(1, 9, 12), k=(1, 9, 6), v=(1, 9, 6))),
    ("rotary_yarn", rotary, dict(heads=1, theta=100.0, factor=4.0, low=0.5, high=2.5, ramp=1, magnitude=1.125),
     dict(x=(1, 9, 8))),
    ("attention_capped", attention_qkv, dict(heads=4, kv_heads=2, scale=0.75, window=5, cap=0.5),
     dict(q=(1, 9, 12), k=(1, 9, 6), v=(1, 9, 6))),
    ("attention_sinks", attention_qkv, dict(heads=4, kv_heads=2, window=5),
     dict(q=(2, 9, 12), k=(2, 9, 6), v=(2, 9, 6), sinks=(4,))),
    ("silu_mul_halves", silu_mul_halves, dict(), dict(x=(2, 3, 22))),
    ("gate_rows", gate_rows, dict(), dict(x=(2, 3, 11), gate=(2, 3, 1))),
    ("swiglu_clamped", swiglu_clamped, dict(scale=1.75, limit=1.0), dict(x=(2, 3, 22))),
]


def run(function, attributes, shapes):
    a = dict(ATTRIBUTES, **attributes)
    a["eps"] = float(torch.tensor(a["eps"], dtype=torch.float32))  # as the attribute holds it
    inputs = {name: torch.randn(shape).double().requires_grad_() for name, shape in shapes.items()}
    y = function(a, *inputs.values())
    dy = torch.randn(y.shape).double()
    y.backward(dy)
    tensors = dict(inputs, y=y, dy=dy, **{"d" + name: t.grad for name, t in inputs.items()})
    return a, tensors


torch.manual_seed(1)
with open(pathlib.Path(__file__).parent / "operators.bin", "wb") as f:
    data = b""
    for name, function, attributes, shapes in CASES:
        a, tensors = run(function, attributes, shapes)
        numbers = "".join(" %.9g" % a[k] for k in ATTRIBUTES)
        f.write(f"case {name} {function.__name__}{numbers}\n".encode())
        for tensor, t in tensors.items():
            f.write(("tensor %s %s\n" % (tensor, " ".join(map(str, t.shape)))).encode())
            data += t.detach().numpy().astype("<f4").tobytes()
    f.write(b"data\n" + data)
