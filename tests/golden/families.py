#!/usr/bin/python3
"""Golden values of every family of models, made by transformers (version 5.24) in double precision.

Writes families/NAME.bin beside this file, one for each configuration below: its config.json as transformers saves it,
the logits, loss and gradients of a first batch, and the losses, gradient norms and parameters of ten steps of AdamW
with clipping and other data in every step. Initial parameters and tokens are not stored: they come from the counter-
based random numbers of gpt2.py. Of parameters after the steps those of the first block are left out. Adam's eps is
1e-4, below most gradients and far above their rounding in float32: with 1e-8 Adam makes steps of full size out of what
little rounding leaves of a gradient that is zero, and with 1e-5 products by AVX2 came out 1.4e-5 off in one parameter.

    tests/golden/families.py
"""
import json
import pathlib
import sys
import tempfile
import numpy
import torch
import transformers

sys.dont_write_bytecode = True
import gpt2

B, T, VOCAB, HIDDEN, INNER = 2, 11, 41, 24, 40
LLAMA3 = dict(rope_type="llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=8)
LONG = dict(rope_type="longrope", short_factor=[1.0, 1.05, 1.3], long_factor=[1.1, 3.0, 7.5])
SIZES = dict(vocab_size=VOCAB, hidden_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4,
             max_position_embeddings=16)
GATED = dict(SIZES, intermediate_size=INNER, bos_token_id=None, eos_token_id=None)

CASES = {
    "llama-gqa": ("Llama", dict(GATED, num_key_value_heads=2, rope_parameters=LLAMA3)),
    "llama-bias": ("Llama", dict(GATED, num_key_value_heads=1, head_dim=10, attention_bias=True, mlp_bias=True,
                                 tie_word_embeddings=True, rms_norm_eps=1e-2,
                                 rope_parameters=dict(rope_type="linear", rope_theta=1e4, factor=2.0))),
    "mistral-window": ("Mistral", dict(GATED, num_key_value_heads=2, sliding_window=4)),
    "mistral-wide": ("Mistral", dict(GATED, num_key_value_heads=4, head_dim=8, sliding_window=None,
                                     tie_word_embeddings=True)),
    "ministral-mixed": ("Ministral", dict(GATED, num_hidden_layers=3, num_key_value_heads=2, head_dim=8,
                                          sliding_window=3, pad_token_id=None,
                                          layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "gemma-wide": ("Gemma", dict(GATED, num_key_value_heads=2, head_dim=12, pad_token_id=None)),
    "gemma-bias": ("Gemma", dict(GATED, num_key_value_heads=4, head_dim=6, pad_token_id=None, attention_bias=True,
                                 tie_word_embeddings=False, hidden_act="gelu")),
    "gemma2-capped": ("Gemma2", dict(GATED, num_hidden_layers=3, num_key_value_heads=2, head_dim=10, pad_token_id=None,
                                     query_pre_attn_scalar=12, sliding_window=3, attn_logit_softcapping=0.05,
                                     final_logit_softcapping=0.75)),
    "gemma2-plain": ("Gemma2", dict(GATED, num_key_value_heads=4, head_dim=6, pad_token_id=None, sliding_window=5,
                                    query_pre_attn_scalar=144, attention_bias=True, tie_word_embeddings=False,
                                    layer_types=["full_attention", "sliding_attention"],
                                    attn_logit_softcapping=None, final_logit_softcapping=2.5)),
    "gemma3_text-mixed": ("Gemma3Text", dict(GATED, num_hidden_layers=3, num_key_value_heads=2, head_dim=10,
                                             pad_token_id=None, query_pre_attn_scalar=144, sliding_window=3,
                                             sliding_window_pattern=2,
                                             rope_parameters=dict(full_attention=dict(rope_type="linear", factor=8.0,
                                                                                      rope_theta=1e4),
                                                                  sliding_attention=dict(rope_type="default",
                                                                                         rope_theta=100.0)))),
    "gemma3_text-types": ("Gemma3Text", dict(GATED, num_key_value_heads=4, head_dim=6, pad_token_id=None,
                                             query_pre_attn_scalar=6, sliding_window=5, attention_bias=True,
                                             layer_types=["full_attention", "sliding_attention"],
                                             tie_word_embeddings=False)),
    "granite-factors": ("Granite", dict(GATED, num_key_value_heads=2, embedding_multiplier=12.0,
                                        residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=6.0,
                                        tie_word_embeddings=True)),
    "granite-bias": ("Granite", dict(GATED, num_key_value_heads=4, attention_multiplier=0.125, logits_scaling=8.0,
                                     attention_bias=True, mlp_bias=True)),
    "olmo2-whole": ("Olmo2", dict(GATED, num_key_value_heads=4, pad_token_id=None)),
    "olmo2-gqa": ("Olmo2", dict(GATED, num_key_value_heads=2, pad_token_id=None, attention_bias=True,
                                tie_word_embeddings=True, rms_norm_eps=1e-2)),
    "olmo3-yarn": ("Olmo3", dict(GATED, num_key_value_heads=2, pad_token_id=None, sliding_window=3, rms_norm_eps=1e-2,
                                 layer_types=["sliding_attention", "full_attention"],
                                 rope_parameters=dict(full_attention=dict(YARN, rope_theta=5e5)))),
    "olmo3-types": ("Olmo3", dict(GATED, num_key_value_heads=4, pad_token_id=None, sliding_window=5,
                                  tie_word_embeddings=True, attention_bias=True,
                                  layer_types=["full_attention", "sliding_attention"])),
    "llama-yarn": ("Llama", dict(GATED, num_key_value_heads=2, head_dim=12,
                                 rope_parameters=dict(YARN, rope_theta=100.0, beta_fast=8.0, beta_slow=0.5,
                                                      truncate=False, attention_factor=0.9))),
    "qwen2-yarn": ("Qwen2", dict(GATED, num_key_value_heads=2, rope_parameters=dict(YARN, rope_theta=100.0, mscale=0.7,
                                                                                    mscale_all_dim=1.1))),
    "qwen3-dynamic": ("Qwen3", dict(GATED, num_key_value_heads=2, head_dim=6, tie_word_embeddings=True,
                                    rope_parameters=dict(rope_type="dynamic", rope_theta=100.0, factor=3.0))),
    "phi3-window": ("Phi3", dict(GATED, num_key_value_heads=2, sliding_window=5, pad_token_id=None)),
    "phi3-partial": ("Phi3", dict(GATED, num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True,
                                  pad_token_id=None,
                                  rope_parameters=dict(rope_type="default", rope_theta=1e3,
                                                       partial_rotary_factor=0.75))),
    "phi3-short": ("Phi3", dict(GATED, num_key_value_heads=2, pad_token_id=None, original_max_position_embeddings=12,
                                rope_parameters=dict(LONG, rope_theta=100.0))),
    "phi3-long": ("Phi3", dict(GATED, num_attention_heads=3, num_key_value_heads=1, tie_word_embeddings=True,
                               pad_token_id=None, original_max_position_embeddings=10,
                               rope_parameters=dict(LONG, rope_theta=1e3, partial_rotary_factor=0.75,
                                                    attention_factor=1.4))),
    "qwen2-tied": ("Qwen2", dict(GATED, num_key_value_heads=2, tie_word_embeddings=True)),
    "qwen2-window": ("Qwen2", dict(GATED, num_key_value_heads=1, use_sliding_window=True, sliding_window=5,
                                   max_window_layers=0)),
    "qwen3-wide": ("Qwen3", dict(GATED, num_key_value_heads=2, head_dim=10)),
    "qwen3-bias": ("Qwen3", dict(GATED, num_key_value_heads=4, head_dim=6, attention_bias=True,
                                 tie_word_embeddings=True)),
    "qwen2-mixed": ("Qwen2", dict(GATED, num_hidden_layers=3, num_key_value_heads=2, use_sliding_window=True,
                                  sliding_window=3, max_window_layers=1)),
    "qwen3-mixed": ("Qwen3", dict(GATED, num_hidden_layers=3, num_key_value_heads=2, head_dim=10,
                                  use_sliding_window=True, sliding_window=5,
                                  layer_types=["sliding_attention", "full_attention", "sliding_attention"])),
    "smollm3-still": ("SmolLM3", dict(GATED, num_hidden_layers=4, num_key_value_heads=2, pad_token_id=None,
                                      tie_word_embeddings=True)),
    "smollm3-bias": ("SmolLM3", dict(GATED, num_hidden_layers=3, num_key_value_heads=4, pad_token_id=None,
                                     no_rope_layers=[0, 1, 0], attention_bias=True, mlp_bias=True,
                                     tie_word_embeddings=False)),
    "gpt_neox-parallel": ("GPTNeoX", dict(GATED, num_attention_heads=2,
                                          rope_parameters=dict(partial_rotary_factor=0.34, rope_theta=1e3,
                                                               rope_type="default"))),
    "gpt_neox-serial": ("GPTNeoX", dict(GATED, use_parallel_residual=False, attention_bias=False,
                                        hidden_act="gelu_new", tie_word_embeddings=True,
                                        rope_parameters=dict(partial_rotary_factor=1.0, rope_theta=1e4,
                                                             rope_type="default"))),
    "opt-relu": ("OPT", dict(SIZES, ffn_dim=INNER, word_embed_proj_dim=HIDDEN, pad_token_id=None)),
    "opt-gelu": ("OPT", dict(SIZES, ffn_dim=INNER, word_embed_proj_dim=HIDDEN, pad_token_id=None, enable_bias=False,
                             activation_function="gelu", tie_word_embeddings=False)),
    "qwen3_moe-normal": ("Qwen3Moe", dict(GATED, num_key_value_heads=2, head_dim=10, num_experts=5,
                                          num_experts_per_tok=2, moe_intermediate_size=20, norm_topk_prob=True)),
    "qwen3_moe-plain": ("Qwen3Moe", dict(GATED, num_key_value_heads=4, head_dim=6, num_experts=4,
                                         num_experts_per_tok=3, moe_intermediate_size=12, norm_topk_prob=False,
                                         attention_bias=True, tie_word_embeddings=True)),
    "mixtral-two": ("Mixtral", dict(GATED, intermediate_size=20, num_key_value_heads=2, num_local_experts=4,
                                    num_experts_per_tok=2)),
    "mixtral-window": ("Mixtral", dict(GATED, intermediate_size=12, num_key_value_heads=4, sliding_window=4,
                                       num_local_experts=3, num_experts_per_tok=3, tie_word_embeddings=True)),
    "olmoe-plain": ("Olmoe", dict(GATED, intermediate_size=14, num_key_value_heads=4, num_experts=6,
                                  num_experts_per_tok=2, pad_token_id=None)),
    "olmoe-gqa": ("Olmoe", dict(GATED, intermediate_size=16, num_key_value_heads=2, num_experts=4,
                                num_experts_per_tok=4, norm_topk_prob=True, attention_bias=True,
                                tie_word_embeddings=True, pad_token_id=None)),
    "granitemoe-factors": ("GraniteMoe", dict(GATED, intermediate_size=20, num_key_value_heads=2, num_local_experts=5,
                                              num_experts_per_tok=2, embedding_multiplier=12.0,
                                              residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=6.0,
                                              tie_word_embeddings=True)),
    "granitemoe-bias": ("GraniteMoe", dict(GATED, intermediate_size=12, num_key_value_heads=4, num_local_experts=3,
                                           num_experts_per_tok=3, attention_multiplier=0.125, logits_scaling=8.0,
                                           attention_bias=True)),
    "qwen2_moe-plain": ("Qwen2Moe", dict(GATED, num_key_value_heads=2, num_experts=5, num_experts_per_tok=2,
                                         moe_intermediate_size=12, shared_expert_intermediate_size=20)),
    "qwen2_moe-window": ("Qwen2Moe", dict(GATED, num_hidden_layers=3, num_key_value_heads=4, num_experts=4,
                                          num_experts_per_tok=3, moe_intermediate_size=10,
                                          shared_expert_intermediate_size=14, norm_topk_prob=True, qkv_bias=False,
                                          use_sliding_window=True, sliding_window=3, tie_word_embeddings=True)),
    "gpt_oss-yarn": ("GptOss", dict(GATED, num_hidden_layers=3, intermediate_size=12, num_key_value_heads=2, head_dim=8,
                                    num_local_experts=5, num_experts_per_tok=2, sliding_window=3, pad_token_id=None,
                                    swiglu_limit=0.25)),
    "gpt_oss-plain": ("GptOss", dict(GATED, intermediate_size=10, num_key_value_heads=4, head_dim=6, pad_token_id=None,
                                     num_local_experts=4, num_experts_per_tok=3, attention_bias=False,
                                     tie_word_embeddings=True, swiglu_alpha=1.25, swiglu_limit=0.125,
                                     layer_types=["full_attention", "sliding_attention"], sliding_window=4,
                                     rope_parameters=dict(rope_type="default", rope_theta=100.0))),
    "gpt2-gelu": ("GPT2", dict(vocab_size=VOCAB, n_embd=HIDDEN, n_layer=2, n_head=3, n_positions=16, n_inner=INNER,
                               activation_function="gelu")),
}


def model_of(name):
    kind, keys = CASES[name]
    config = getattr(transformers, kind + "Config")(**keys)
    config._experts_implementation = "eager"  # the others have no doubles
    head = "GPT2LMHeadModel" if kind == "GPT2" else kind.replace("3Text", "3") + "ForCausalLM"
    return getattr(transformers, head)(config).double().eval()  # no dropout


def saved_config(model):
    with tempfile.TemporaryDirectory() as folder:
        model.config.save_pretrained(folder)
        return json.dumps(json.loads((pathlib.Path(folder) / "config.json").read_text()))


GRANITE_MOE = {"experts.gate_up_proj": "input_linear.weight", "experts.down_proj": "output_linear.weight",
               "router.weight": "router.layer.weight"}


def turned(x):
    return x.transpose(1, 2)


def halves(x):  # of rows, or of elements, that alternate
    return x.unflatten(1, (-1, 2)).transpose(1, 2)


# Names and layouts here (src/io/stack.h).
GPT_OSS = {"gate_up_proj": ("gate_up_proj^T2.weight", lambda x: halves(turned(x))),
           "gate_up_proj_bias": ("gate_up_proj^T2.bias", halves),
           "down_proj": ("down_proj^T.weight", turned),
           "down_proj_bias": ("down_proj^T.bias", lambda x: x),
           "sinks": ("sinks^.weight", lambda x: x)}


def hub_parts(name, t, kind):
    """Names in files of a parameter and the parts of it that they mean: experts are fused in memory. '*' stands for an
    expert's number: the values of all experts follow one another."""
    whole = lambda x: x
    if kind == "granitemoe":
        scope, _, rest = name.partition(".block_sparse_moe.")
        return {f"{scope}.block_sparse_moe.{GRANITE_MOE[rest]}" if rest else name: whole}
    if kind == "gpt_oss":
        scope, _, last = name.rpartition(".")
        here, take = GPT_OSS.get(last, (last, whole))
        return {f"{scope}.{here}": take}
    mixtral = kind == "mixtral"
    gate, up, down = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
    if mixtral:
        name = name.replace(".mlp.", ".block_sparse_moe.")
    if name.endswith(".experts.gate_up_proj"):
        half, stem = t.shape[1] // 2, name[:-len("gate_up_proj")]
        return {f"{stem}*.{gate}.weight": lambda x: x[:, :half], f"{stem}*.{up}.weight": lambda x: x[:, half:]}
    if name.endswith(".experts.down_proj"):
        return {f"{name[:-len('down_proj')]}*.{down}.weight": whole}
    return {name: whole}


def parameters(model):
    """By their names in files: the parameter in memory, and the part of it."""
    kind = model.config.model_type
    names = {"lm_head.weight": "embed_out.weight"} if kind == "gpt_neox" else {}
    every = [(names.get(part, part), t, take) for name, t in model.named_parameters()
             for part, take in hub_parts(name, t, kind).items()]
    made = {}
    for index, (name, t, take) in enumerate(every):
        part = take(t.detach())
        values = gpt2.uniform(1000 + index, part.numel())
        adds_one = kind.startswith("gemma")
        if ("norm" in name or ".ln_" in name) and name.endswith("weight") and not adds_one:
            values = numpy.float32(1) + values
        with torch.no_grad():
            part.copy_(torch.tensor(values.astype(numpy.float64)).reshape(part.shape))
        made[name] = t, take
    return made


def batches():
    every = dict(V=VOCAB, B=B * gpt2.STEPS, T=T)
    return zip(*(gpt2.tokens(every, seed).split(B) for seed in (1, 2)))


def train(name, clip):
    model = model_of(name)
    p = parameters(model)
    whole = dict(model.named_parameters())
    optimizer = gpt2.adamw(whole)
    for group in optimizer.param_groups:
        group["eps"] = 1e-4
    losses, norms, logits, grads = [], [], None, None
    for ids, targets in batches():
        optimizer.zero_grad()
        out = model(input_ids=ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1), targets.flatten())
        loss.backward()
        losses.append(loss.item())
        if grads is None:
            logits, grads = out.detach().clone(), {key: take(t.grad).clone() for key, (t, take) in p.items()}
        norms.append(torch.nn.utils.clip_grad_norm_(whole.values(), clip).item())
        optimizer.step()
    p = {key: take(t) for key, (t, take) in p.items()}
    return dict(model=model, p=p, losses=losses, norms=norms, logits=logits, grads=grads)


def values(t):
    return t.detach().contiguous().numpy().astype("<f4").tobytes()


def write(path, name):
    free = train(name, 1e9)
    clip = float("%.3g" % numpy.median(free["norms"]))
    r = train(name, clip)
    assert any(n > clip for n in r["norms"]) and any(n < clip for n in r["norms"]), r["norms"]
    data = values(r["logits"])
    with open(path, "wb") as f:
        f.write(("config " + saved_config(r["model"]) + "\n").encode())
        f.write(f"sizes {B} {T} {VOCAB}\nclip {clip:.17g}\n".encode())
        f.write(("losses " + " ".join("%.17g" % x for x in r["losses"]) + "\n").encode())
        f.write(("norms " + " ".join("%.17g" % x for x in r["norms"]) + "\n").encode())
        for key, t in r["p"].items():
            kept, grad = int(".0." not in key), r["grads"][key]
            f.write(f"tensor {key} {t.numel()} {kept}\n".encode())
            data += values(grad)
            if kept:
                data += values(t)
        f.write(b"data\n" + data)
    print(name, "clip %g" % clip, *("%.4f/%.4f" % pair for pair in zip(r["losses"], r["norms"])), path.stat().st_size)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = pathlib.Path(__file__).parent / "families"
    for case in sys.argv[1:] or CASES:
        write(folder / (case + ".bin"), case)
