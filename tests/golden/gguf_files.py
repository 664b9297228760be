#!/usr/bin/python3
"""GGUF files made by llama.cpp's own package, gguf, and what they hold, for tests/gguf/test_gguf.c.

Writes beside it

    gguf/types.gguf, types.crc      a tensor of each type that is read, random blocks; crc32 of its values as floats
    gguf/llama.gguf, llama.crc      a tiny Llama with biases and Llama 3's rotation, queries and keys in llama.cpp's
                                    order; crc32 of each parameter under Hugging Face's name
    gguf/qwen3.gguf, qwen3.crc      a tiny Qwen3 with a head of its own
    gguf/gpt2.gguf, gpt2.crc        a tiny GPT-2, whose matrices are turned, and
    gguf/gptneox.gguf, gptneox.crc  a tiny GPT-NeoX, whose queries, keys and values are together head by head with us
    gguf/adapter-ARCH/              PEFT's files of an adapter for ARCH.gguf, and
    gguf/adapter-ARCH.gguf          what llama.cpp's converter makes of them (of GPT-2 what llama.cpp wants)
    gguf/olmo3.gguf                 the keys of an OLMo 3 with YaRN and windows in blocks as a list says, an embedding
    gguf/tokens-KIND.gguf           the tokenizer of tokenizers/KIND (tokenizer_ids.py has its ids)

and corpus files of fuzz_gguf. A line of a .crc file is NAME CRC. Made with gguf 0.19.

    tests/golden/gguf_files.py
"""
import json
import pathlib
import zlib

import gguf
import numpy as np
import safetensors.numpy
from gguf import GGMLQuantizationType as Type

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "gguf"
CORPUS = HERE.parent.parent / "fuzz" / "corpus" / "gguf"
PLAIN = [Type.F32, Type.F16, Type.BF16]
BLOCKS = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K, Type.Q6_K]
# Where a block has halves that scale it: random bits there would be infinities
SCALES = {Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q8_0: [0], Type.Q4_K: [0, 2],
          Type.Q5_K: [0, 2], Type.Q6_K: [208]}
random = np.random.default_rng(32)


def crc(values):
    return zlib.crc32(np.ascontiguousarray(values, dtype="<f4").tobytes())


def blocks(kind, rows, columns):
    """Any bytes, with scales that are finite."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    data = random.integers(0, 256, (rows * columns // elements, size), dtype=np.uint8)
    for at in SCALES[kind]:
        data[:, at:at + 2] = random.normal(0, 0.1, (len(data), 1)).astype("<f2").view(np.uint8)
    return data.reshape(rows, -1)


def mxfp4_blocks(rows, columns):
    """Any bytes, with scales of all sizes that are numbers; from random numbers of their own."""
    data = np.random.default_rng(39).integers(0, 256, (rows * columns // 32, 17), dtype=np.uint8)
    data[:, 0] = np.append(np.arange(0, 255), 127)[np.arange(len(data)) * 85 % 256]
    return data.reshape(rows, -1)


def stored(kind, values):
    """Values as the type has them."""
    if kind == Type.F32:
        return values.astype("<f4")
    if kind == Type.F16:
        return values.astype("<f2")
    return gguf.quants.quantize(values.astype("<f4"), kind)


def add(writer, lines, name, kind, data, ours=None, values=None):
    raw = None if data.dtype in (np.float32, np.float16) else kind
    writer.add_tensor(name, data, raw_dtype=raw)
    values = gguf.quants.dequantize(data, kind) if values is None else values
    lines.append(f"{ours or name} {crc(values)}")


def finish(writer, name, lines):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if lines:
        (FOLDER / f"{name}.crc").write_text("\n".join(sorted(lines)) + "\n")


def open_writer(name, arch):
    return gguf.GGUFWriter(FOLDER / f"{name}.gguf", arch)


def types():
    writer, lines = open_writer("types", "test"), []
    for kind in PLAIN + BLOCKS:
        data = blocks(kind, 3, 512) if kind in BLOCKS else stored(kind, random.normal(0, 1, (3, 512)))
        add(writer, lines, kind.name.lower(), kind, data)
    add(writer, lines, "mxfp4", Type.MXFP4, mxfp4_blocks(3, 512))
    finish(writer, "types", lines)


def permuted(values, heads):
    """As llama.cpp's converter does it for rotations of neighbours."""
    shape = values.shape
    return values.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)


def llama3_factors(size, theta, factor, low, high, original):
    """As llama.cpp's converter writes them."""
    lengths = 2 * np.pi * theta ** (np.arange(0, size, 2) / size)
    smooth = (original / lengths - low) / (high - low)
    between = 1 / ((1 - smooth) / factor + smooth)
    found = np.where(lengths < original / high, 1, np.where(lengths > original / low, factor, between))
    return found.astype("<f4")


def head(writer, heads, kv_heads, size, layers, hidden, inner, positions):
    writer.add_context_length(positions)
    writer.add_embedding_length(hidden)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500000.0)
    writer.add_rope_dimension_count(size)


def tokens_small(writer):
    """A vocabulary of SentencePiece's kind."""
    texts = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    words = ["\u2581", "a", "b", "c", "ab", "\u2581a", "abc", "\u2581ab", "\u2581abc"]
    writer.add_tokenizer_model("llama")
    writer.add_token_list(texts + words)
    writer.add_token_scores([0.0] * len(texts) + [-float(i) for i in (90, 91, 92, 93, 1, 2, 3, 4, 5)])
    writer.add_token_types(kinds + [1] * len(words))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template("{{ messages[0].content }}")
    return len(texts) + len(words)


def linear(writer, lines, name, ours, kind, rows, columns, heads=0):
    values = random.normal(0, 0.05, (rows, columns)).astype("<f4")
    data = stored(kind, permuted(values, heads) if heads else values)
    found = gguf.quants.dequantize(data, kind)
    if heads:  # back again: row 2j + s of a head is row s * size / 2 + j
        found = found.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)
    add(writer, lines, f"{name}.weight", kind, data, f"{ours}.weight", found)


def vector(writer, lines, name, ours, size, heads=0):
    values = random.normal(1, 0.1, size).astype("<f4")
    writer.add_tensor(name, permuted(values, heads) if heads else values)
    lines.append(f"{ours} {crc(values)}")


def block(writer, lines, i, heads, kv_heads, size, hidden, inner, bias, norm, permutes):
    b, o, q = f"blk.{i}.", f"model.layers.{i}.", Type.Q8_0
    kinds = {"q": (heads, permutes), "k": (kv_heads, permutes), "v": (kv_heads, False)}
    vector(writer, lines, b + "attn_norm.weight", o + "input_layernorm.weight", hidden)
    vector(writer, lines, b + "ffn_norm.weight", o + "post_attention_layernorm.weight", hidden)
    for name, (count, turns) in kinds.items():
        linear(writer, lines, f"{b}attn_{name}", f"{o}self_attn.{name}_proj", q, count * size, hidden,
               count if turns else 0)
        if bias:
            vector(writer, lines, f"{b}attn_{name}.bias", f"{o}self_attn.{name}_proj.bias", count * size,
                   count if turns else 0)
        if norm and name != "v":
            vector(writer, lines, f"{b}attn_{name}_norm.weight", f"{o}self_attn.{name}_norm.weight", size)
    linear(writer, lines, b + "attn_output", o + "self_attn.o_proj", Type.Q4_0, hidden, heads * size)
    if bias:
        vector(writer, lines, b + "attn_output.bias", o + "self_attn.o_proj.bias", hidden)
    linear(writer, lines, b + "ffn_gate", o + "mlp.gate_proj", Type.BF16, inner, hidden)
    linear(writer, lines, b + "ffn_up", o + "mlp.up_proj", Type.F16, inner, hidden)
    linear(writer, lines, b + "ffn_down", o + "mlp.down_proj", Type.Q4_1, hidden, inner)


def model(name, arch, factors, tied, bias, norm, size):
    heads, kv_heads, layers, hidden, inner = 4, 2, 2, 32, 64
    writer, lines = open_writer(name, arch), []
    head(writer, heads, kv_heads, size, layers, hidden, inner, 128)
    if size * heads != hidden:
        writer.add_key_length(size)
        writer.add_value_length(size)
    vocabulary = tokens_small(writer)
    linear(writer, lines, "token_embd", "model.embed_tokens", Type.Q8_0, vocabulary, hidden)
    if factors:
        writer.add_tensor("rope_freqs.weight", llama3_factors(size, 500000.0, 8.0, 1.0, 4.0, 8192))
    for i in range(layers):
        block(writer, lines, i, heads, kv_heads, size, hidden, inner, bias, norm, arch == "llama")
    vector(writer, lines, "output_norm.weight", "model.norm.weight", hidden)
    if not tied:
        linear(writer, lines, "output", "lm_head", Type.F16, vocabulary, hidden)
    finish(writer, name, lines)


def gpt_matrix(writer, lines, name, ours, rows, columns, order=None):
    """[rows, columns] here: "turned" there, or "parts" of heads one after the other."""
    values = random.normal(0, 0.05, (rows, columns)).astype("<f2")
    data = values.T if order == "turned" else by_part(values) if order == "parts" else values
    writer.add_tensor(f"{name}.weight", np.ascontiguousarray(data))
    lines.append(f"{ours}.weight {crc(values)}")


def gpt_vector(writer, lines, name, ours, size, order=None):
    values = random.normal(1, 0.1, size).astype("<f4")
    writer.add_tensor(name, by_part(values) if order == "parts" else values)
    lines.append(f"{ours} {crc(values)}")


def by_part(values, heads=2):
    """As llama.cpp's converter does it: all queries, all keys, all values."""
    split = values.reshape(heads, 3, len(values) // heads // 3, *values.shape[1:])
    return np.concatenate([split[:, i].reshape(-1, *values.shape[1:]) for i in range(3)])


def gpt(name, model_names, block_names, block_prefix, keys):
    """One block; of names what stands in the file, here, and how it is ordered."""
    hidden, inner, positions = 16, 32, 24
    writer, lines = open_writer(name, name), []
    writer.add_context_length(positions)
    writer.add_embedding_length(hidden)
    writer.add_block_count(1)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_layer_norm_eps(1e-5)
    keys(writer)
    rows = {"token_embd": tokens_small(writer), "position_embd": positions}
    rows["output"] = rows["token_embd"]
    shapes = {"attn_qkv": (3 * hidden, hidden), "attn_output": (hidden, hidden), "ffn_up": (inner, hidden),
              "ffn_down": (hidden, inner)}
    for theirs, ours, order in block_names:
        there, here = f"blk.0.{theirs}", f"{block_prefix}0.{ours}"
        if theirs.endswith("norm"):
            gpt_vector(writer, lines, f"{there}.weight", f"{here}.weight", hidden)
            gpt_vector(writer, lines, f"{there}.bias", f"{here}.bias", hidden)
            continue
        out, into = shapes[theirs]
        shape = (into, out) if order == "turned" else (out, into)
        gpt_matrix(writer, lines, there, here, *shape, order)
        gpt_vector(writer, lines, f"{there}.bias", f"{here}.bias", out, order)
    for theirs, ours in model_names:
        if theirs == "output_norm":
            gpt_vector(writer, lines, f"{theirs}.weight", f"{ours}.weight", hidden)
            gpt_vector(writer, lines, f"{theirs}.bias", f"{ours}.bias", hidden)
        elif theirs == "position_embd":  # which the converter does not round
            values = random.normal(0, 0.05, (positions, hidden)).astype("<f4")
            writer.add_tensor(f"{theirs}.weight", values)
            lines.append(f"{ours}.weight {crc(values)}")
        else:
            gpt_matrix(writer, lines, theirs, ours, rows[theirs], hidden)
    finish(writer, name, lines)


def neox_keys(writer):
    writer.add_rope_dimension_count(2)
    writer.add_parallel_residual(True)


def gpts():
    gpt("gpt2", [("token_embd", "transformer.wte"), ("position_embd", "transformer.wpe"),
                 ("output_norm", "transformer.ln_f")],
        [("attn_norm", "ln_1", None), ("attn_qkv", "attn.c_attn", "turned"),
         ("attn_output", "attn.c_proj", "turned"), ("ffn_norm", "ln_2", None), ("ffn_up", "mlp.c_fc", "turned"),
         ("ffn_down", "mlp.c_proj", "turned")], "transformer.h.", lambda writer: None)
    gpt("gptneox", [("token_embd", "gpt_neox.embed_in"), ("output_norm", "gpt_neox.final_layer_norm"),
                    ("output", "embed_out")],
        [("attn_norm", "input_layernorm", None), ("attn_qkv", "attention.query_key_value", "parts"),
         ("attn_output", "attention.dense", None), ("ffn_norm", "post_attention_layernorm", None),
         ("ffn_up", "mlp.dense_h_to_4h", None), ("ffn_down", "mlp.dense_4h_to_h", None)], "gpt_neox.layers.",
        neox_keys)


def adapter(arch, prefix, modules, layers, name=None, whole=(), **others):
    """Factors of (here, there, inputs, outputs, order of outputs' rows, rank, scale beside alpha / rank) in each layer.
    PEFT's scales are its own; llama.cpp's is alpha / rank for all, so that others are in the second factor."""
    name, ours = name or arch, {f"base_model.model.{key}": np.ones(size, dtype="<f4") for key, size in whole}
    folder = FOLDER / f"adapter-{name}"
    writer = gguf.GGUFWriter(FOLDER / f"adapter-{name}.gguf", arch)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, 6.0)
    for i in range(layers):
        for here, there, ins, outs, order, rank, scale in modules:
            a, b = (random.normal(0, 0.1, shape).astype("<f4") for shape in ((rank, ins), (outs, rank)))
            ours |= {f"base_model.model.{prefix}{i}.{here}.lora_{which}.weight": data
                     for which, data in (("A", a), ("B", b))}
            writer.add_tensor(f"blk.{i}.{there}.weight.lora_a", a)
            writer.add_tensor(f"blk.{i}.{there}.weight.lora_b", order(b) * np.float32(scale))
    finish(writer, f"adapter-{name}", [])
    folder.mkdir(exist_ok=True)
    safetensors.numpy.save_file(ours, folder / "adapter_model.safetensors")
    config = dict(peft_type="LORA", task_type="CAUSAL_LM", base_model_name_or_path="", r=4, lora_alpha=6,
                  target_modules=[module[0].rpartition(".")[2] for module in modules], **others)
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")


def adapters():
    def same(b):
        return b
    adapter("llama", "model.layers.", [("self_attn.q_proj", "attn_q", 32, 32, lambda b: permuted(b, 4), 4, 1),
                                       ("self_attn.k_proj", "attn_k", 32, 16, lambda b: permuted(b, 2), 4, 1),
                                       ("self_attn.v_proj", "attn_v", 32, 16, same, 4, 1),
                                       ("mlp.down_proj", "ffn_down", 64, 32, same, 4, 1)], 2)
    adapter("gpt2", "transformer.h.", [("attn.c_attn", "attn_qkv", 16, 48, same, 4, 1),
                                       ("mlp.c_fc", "ffn_up", 16, 32, same, 4, 1)], 1)
    adapter("gptneox", "gpt_neox.layers.", [("attention.query_key_value", "attn_qkv", 16, 48, by_part, 4, 1),
                                            ("mlp.dense_4h_to_h", "ffn_down", 32, 16, same, 4, 1)], 1)
    adapter("gpt2", "transformer.h.", [("attn.c_attn", "attn_qkv", 16, 48, same, 4, 2),
                                       ("mlp.c_fc", "ffn_up", 16, 32, same, 2, 1)], 1, "patterns",
            rank_pattern={"c_fc": 2}, alpha_pattern={"c_attn": 12})
    adapter("gpt2", "transformer.h.", [("mlp.c_fc", "ffn_up", 16, 32, same, 4, 1)], 1, "whole",
            [("transformer.ln_f.weight", 16), ("transformer.ln_f.bias", 16)], modules_to_save=["ln_f"])
    (FOLDER / "adapter-whole.gguf").unlink()  # llama.cpp has no such


def olmo3():
    """As llama.cpp's converter writes it, with the attention's factor that early versions wrote."""
    writer = open_writer("olmo3", "olmo2")
    head(writer, 4, 4, 8, 3, 32, 64, 65536)
    writer.add_sliding_window(4096)
    writer.add_sliding_window_pattern([True, False, True])
    writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(8.0)
    writer.add_rope_scaling_attn_factors(1.2079441541679836)
    writer.add_rope_scaling_orig_ctx_len(8192)
    writer.add_tensor("token_embd.weight", np.ones((4, 32), dtype="<f4"))
    finish(writer, "olmo3", [])


def tokens(kind, pre, bos):
    data = json.loads((HERE / "tokenizers" / kind / "tokenizer.json").read_text())
    texts = {id: text for text, id in data["model"]["vocab"].items()}
    kinds = {id: 1 for id in texts}
    for token in data["added_tokens"]:
        texts[token["id"]] = token["content"]
        kinds[token["id"]] = 3 if token["special"] else 4
    order = range(len(texts))
    merges = [m if isinstance(m, str) else " ".join(m) for m in data["model"]["merges"]]
    writer = open_writer(f"tokens-{kind}", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([texts[i] for i in order])
    writer.add_token_types([kinds[i] for i in order])
    writer.add_token_merges(merges)
    if bos:
        writer.add_bos_token_id(next(i for i in order if texts[i] == bos))
    writer.add_eos_token_id(next(i for i in order if texts[i] == "<|im_end|>"))
    finish(writer, f"tokens-{kind}", [])


def corpus():
    """Small files for the fuzzer: one that is good, one of each thing that can be wrong in the head."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    path = CORPUS / "good"
    writer = gguf.GGUFWriter(path, "llama")
    head(writer, 2, 1, 4, 1, 8, 8, 16)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(["a", "b", "ab", "<s>"])
    writer.add_token_types([1, 1, 1, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(3)
    writer.add_tensor("token_embd.weight", np.ones((4, 8), dtype="<f4"))
    writer.add_tensor("blk.0.ffn_up.weight", blocks(Type.Q8_0, 1, 32), raw_dtype=Type.Q8_0)
    finish(writer, "good", [])
    good = path.read_bytes()
    at = good.index(b"token_embd.weight") + 17
    (CORPUS / "version").write_bytes(good[:4] + b"\x09" + good[5:])
    (CORPUS / "big-endian").write_bytes(good[:4] + b"\x00\x00\x00\x03" + good[8:])
    (CORPUS / "many-tensors").write_bytes(good[:8] + b"\xff" * 8 + good[16:])
    (CORPUS / "many-keys").write_bytes(good[:16] + b"\xff" * 7 + b"\x0f" + good[24:])
    (CORPUS / "huge-shape").write_bytes(good[:at + 4] + b"\xff" * 7 + b"\x7f" + good[at + 12:])
    (CORPUS / "rank").write_bytes(good[:at] + b"\x09" + good[at + 1:])
    (CORPUS / "type").write_bytes(good[:at + 20] + b"\x63" + good[at + 21:])
    (CORPUS / "offset").write_bytes(good[:at + 24] + b"\xe0" + b"\xff" * 7 + good[at + 32:])
    other = good.index(b"blk.0.ffn_up.weight") + 19
    (CORPUS / "overlap").write_bytes(good[:other + 24] + b"\x00" + good[other + 25:])
    (CORPUS / "cut").write_bytes(good[:-40])


FOLDER.mkdir(exist_ok=True)
types()
model("llama", "llama", True, True, True, False, 8)
model("qwen3", "qwen3", False, False, False, True, 16)
olmo3()
tokens("llama3", "llama-bpe", "<|begin_of_text|>")
tokens("qwen2", "qwen2", None)
corpus()
gpts()
adapters()
