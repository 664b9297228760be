#!/usr/bin/env python3
"""Which keys llama.cpp reads of GGUF files, for tests/gguf/test_llamacpp.c, found in its source.

Writes beside it gguf/llamacpp_keys.txt: SCOPE KEY NEED a line. SCOPE is an architecture, or "every" one of them,
without which KEY stands, or "file": general.* and tokenizer.*. NEED is "required" where the loader gives up without the
key. What it takes where an optional key is missing stands in the test, by hand.

    tests/golden/llamacpp_keys.py LLAMA.CPP     (its source folder; made with version 0.5.0-dev, ggml 0.25.3)
"""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1]) / "src"
OUT = pathlib.Path(__file__).parent / "gguf" / "llamacpp_keys.txt"
ARCHS = ["llama", "qwen2", "qwen3", "gemma", "gemma2", "gemma3", "phi3", "granite", "olmo2", "smollm3", "gpt2",
         "gptneox", "qwen3moe", "olmoe", "granitemoe", "qwen2moe", "gpt-oss"]
FILES = {"granitemoe": "granite-moe", "gpt-oss": "openai-moe"}  # those with other names


def text(name):
    return (SOURCE / name).read_text()


def body(source, head):
    """Of a function: up to the brace in the first column."""
    start = source.index(head)
    return source[start:source.index("\n}", start)]


def arguments(source, at):
    """Those of the call whose parenthesis opens at a place."""
    depth, out = 0, [""]
    for letter in source[at + 1:]:
        if letter == ")" and depth == 0:
            return [part.strip() for part in out]
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            out.append("")
        else:
            out[-1] += letter


names = dict(re.findall(r"\{\s*(LLM_KV_\w+),\s*\"([^\"]+)\"\s*\}", body(text("llama-arch.cpp"), "LLM_KV_NAMES =")))
found = {}


def add(arch, constant, need):
    key = names.get(constant)
    if not key:
        return
    scope = arch if key.startswith("%s.") else "file"
    place = (scope, key.removeprefix("%s."))
    found[place] = "required" if need or found.get(place) == "required" else "optional"


def scan(arch, source):
    source = re.sub(r"//.*|/\*.*?\*/", "", source)
    for call in re.finditer(r"\bget_(?:key_or_arr|key|arr|arr_n)\s*\(", source):
        given = arguments(source, call.end() - 1)
        for constant in re.findall(r"LLM_KV_\w+", given[0]):
            add(arch, constant, given[-1] != "false")
    for constant in re.findall(r"\{\s*(LLM_KV_\w+)\s*,\s*special_\w+|\bkv\((LLM_KV_\w+)\)", source):
        constant = constant[0] or constant[1]
        if ("%s" not in names.get(constant, "%s")) and ("file", names[constant]) not in found:
            add(arch, constant, False)


model = text("llama-model.cpp")
loader = text("llama-model-loader.cpp")
swa = body(model, "void llama_model_base::load_swa_pattern")
every = body(model, "void llama_model_base::load_hparams")
every = every[:every.index("if (arch == LLM_ARCH_WAVTOKENIZER_DEC)")] + every[every.index("models may route"):]
scan("every", every)
for arch in ARCHS:
    own = body(text(f"models/{FILES.get(arch, arch)}.cpp"), "::load_arch_hparams")
    scan(arch, own)
    if "load_swa_pattern" in own:
        scan(arch, swa)
scan("", body(text("llama-vocab.cpp"), "void llama_vocab::impl::load("))
for constant in re.findall(r"get_key\((?:llm_kv\()?(LLM_KV_GENERAL_\w+)", loader):
    add("", constant, False)
found[("file", "general.architecture")] = "required"  # of which the names of all others are made
found[("file", "tokenizer.ggml.tokens")] = "required"  # looked for by another function, and missed by a throw
for key in re.findall(r"return \"(general\.sampling\.\w+)\"", model):
    found[("file", key)] = "optional"  # common/common.cpp: what its programs sample with unless told otherwise
found[("file", "tokenizer.chat_template")] = "optional"
OUT.write_text("".join(f"{scope} {key} {need}\n" for (scope, key), need in sorted(found.items())))
