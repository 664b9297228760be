#!/usr/bin/python3
"""Golden ids of the tokenizers library, for each kind of tokenizer that src/tokenizer reads.

Trains a small vocabulary of each kind on tokenizers/corpus.txt and writes beside it

    tokenizers/strings.json         what test strings are put together from
    tokenizers/KIND/tokenizer.json  the tokenizer
    tokenizers/KIND/golden.bin      of STRINGS strings and IDS lists of random ids, little-endian:
        uint32 [STRINGS]            crc32 of a string's ids, of those with the template, and of the text they decode to
        uint32 [IDS]                crc32 of the text that random ids decode to
        FULL times uint16 n, uint16 [n]  the ids of the first strings

The strings are not stored: `string(i)` makes them from counter-based random numbers, and
tests/tokenizer/tokenizer_strings.c does the same. They leave out what Unicode has only since 15.0, which Oniguruma may
not know. Made with tokenizers 0.23.

    tests/golden/tokenizer_ids.py [KIND ...]
"""
import json
import pathlib
import struct
import sys
import zlib

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(__file__).parent / "tokenizers"
CORPUS = (FOLDER / "corpus.txt").read_text()
STRINGS, IDS, FULL, VOCABULARY = 10000, 2000, 200, 1500
LONG_EVERY, LONG_PARTS = 250, 300

FRAGMENTS = [
    "<s>", "</s>", "<unk>", "<pad>", "<|endoftext|>", "<|begin_of_text|>", "<|im_start|>", "<|im_end|>", "<mask>",
    " <mask> ",
    "a<mask>b", "word", "_word", "aword word", "\u00e9word", " word  ", "<tool>", "  <tool>\n", "<|", "<0x41>",
    "<0xE2>",
    "\u2581", "\u2581\u2581", " \u2581 ", "'s", "'S", "'LL", "'\u017f", "don't", "I'D", "we'Ve", "e\u0301",
    "a\u0323\u0302",
    "\u1100\u1161\u11a8", "\uac00\u11a8", "\ufb01", "\u212b", "\u0958", "\u0344", "\u1e9b\u0323",
    "\U0001f1eb\U0001f1f7",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "--", "-", "...", "\u00e9t\u00e9", "E\u0301t\u00e9", "\n\n  ",
    "\r\n",
    "123456", "3.14", "x = y[i] + 1;", "if (a && b) {", "https://example.org", "\ufffd", "0", "\u0663\u0664",
]
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\u00a0", "\u3000", "\u2003", "\u0085",
          "\u180e",
          "\u000b", "\u000c", "\u200b", "\ufeff", "\u2028", "        "]
RANGES = [
    [0x20, 0x7e], [0x20, 0x7e], [0x00, 0x1f], [0x7f, 0xff], [0x100, 0x2ff], [0x300, 0x36f], [0x370, 0x3ff],
    [0x400, 0x52f],
    [0x590, 0x5ff], [0x600, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f], [0x1100, 0x11ff], [0x1e00, 0x1fff],
    [0x2000, 0x206f],
    [0x2070, 0x218f], [0x2190, 0x23ff], [0x2460, 0x27bf], [0x3040, 0x30ff], [0x4e00, 0x9fff], [0xac00, 0xd7a3],
    [0xe000, 0xe0ff], [0xf900, 0xfaff], [0xfb00, 0xfb4f], [0xfe00, 0xfe0f], [0xff00, 0xffef], [0x1d400, 0x1d7ff],
    [0x1f300, 0x1f64f], [0x1f900, 0x1f9ff], [0x20000, 0x200ff], [0xe0000, 0xe007f], [0x10ff00, 0x10ffff],
]
MASK = (1 << 64) - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 & MASK
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb & MASK
    return z ^ (z >> 31)


def random_bits(seed, counter):
    golden = 0x9e3779b97f4a7c15
    return mix((mix((seed + golden) & MASK) + (counter + 1) * golden) & MASK)


class Draws:
    """Numbers of one stream, one after the other."""

    def __init__(self, seed):
        self.seed, self.counter = seed, 0

    def below(self, limit):
        self.counter += 1
        return random_bits(self.seed, self.counter - 1) % limit


def code(draws):
    first, last = RANGES[draws.below(len(RANGES))]
    return chr(first + draws.below(last - first + 1))


def part(draws):
    kind = draws.below(10)
    if kind < 4:
        start, length = draws.below(len(CORPUS)), draws.below(60)
        return CORPUS[start:start + length]
    if kind == 4:
        return "".join(code(draws) for _ in range(1 + draws.below(6)))
    if kind == 5:
        return "".join(SPACES[draws.below(len(SPACES))] for _ in range(1 + draws.below(4)))
    if kind == 6:
        return "".join(chr(ord("0") + draws.below(10)) for _ in range(1 + draws.below(7)))
    if kind == 7:
        return FRAGMENTS[draws.below(len(FRAGMENTS))]
    if kind == 8:
        return code(draws) * (1 + draws.below(40))
    return "".join(chr(0x21 + draws.below(94)) for _ in range(1 + draws.below(12)))


def string(i):
    draws = Draws(i)
    parts = 1 + draws.below(7)
    return "".join(part(draws) for _ in range(LONG_PARTS if i % LONG_EVERY == LONG_EVERY - 1 else parts))


# ---- kinds ---------------------------------------------------------------------------------------------------------

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
          r"\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ENDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDS}|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDS}|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = "\u2581"


def special(content, **options):
    return AddedToken(content, **{"special": True, "normalized": False, **options})


def trained(pre, normalizer=None, first=(), size=VOCABULARY):
    """Vocabulary and merges of byte-level BPE."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(first), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [tuple(m) for m in model["merges"]]


def byte_level(pre, normalizer=None, first=(), **options):
    vocab, merges = trained(pre, normalizer, first)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, **options))
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def pieces(pre, specials, fallback, alphabet=None):
    """A vocabulary as SentencePiece lays it out: specials, bytes, characters and what they merge to."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    if pre:
        tokenizer.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, show_progress=False, limit_alphabet=alphabet or 300)
    tokenizer.train_from_iterator([MARK + line for line in CORPUS.splitlines()], trainer)
    model = json.loads(tokenizer.to_str())["model"]
    texts = list(specials) + ([f"<0x{byte:02X}>" for byte in range(256)] if fallback else [])
    texts += [text for text, _ in sorted(model["vocab"].items(), key=lambda item: item[1]) if text not in texts]
    return {text: i for i, text in enumerate(texts)}, [tuple(m) for m in model["merges"]]


def gpt2():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), first=["<|endoftext|>"])
    tokenizer.add_special_tokens([special("<|endoftext|>")])
    return tokenizer


def llama3():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(pre, ignore_merges=True)
    # words that no merge makes, as in Llama 3's vocabulary
    data = json.loads(tokenizer.to_str())
    for text in ["\u0120dignityxyz", "consciencely", "\u0120\u0120\u0120\u010a"]:
        data["model"]["vocab"][text] = len(data["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens([special("<|begin_of_text|>"), special("<|endoftext|>"), special("<|im_end|>")])
    first = tokenizer.token_to_id("<|begin_of_text|>")
    template = processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B:1",
                                             special_tokens=[("<|begin_of_text|>", first)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return tokenizer


def qwen2():
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(QWEN2), "isolated"),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(pre, normalizers.NFC())
    tokenizer.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False)])
    return tokenizer


def o200k():
    """As gpt-oss and GPT-4o have it."""
    pre = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(O200K), "isolated"),
                                   pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer = byte_level(pre)
    tokenizer.add_special_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>")])
    return tokenizer


def gpt_neox():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC(),
                           first=["<|endoftext|>", "<pad>"])
    tokenizer.add_special_tokens([special("<|endoftext|>"), special("<pad>")])
    tokenizer.add_special_tokens([special("<mask>", lstrip=True), special("<tool>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    tokenizer.add_tokens([AddedToken("word", single_word=True), AddedToken("E\u0301t\u00e9", normalized=True)])
    template = processors.TemplateProcessing(single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


SPECIALS = ["<unk>", "<s>", "</s>"]
LLAMA2_TEMPLATE = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])


def llama2():
    vocab, merges = pieces(pre_tokenizers.Metaspace(prepend_scheme="never"), SPECIALS, True)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])
    tokenizer.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([special(text) for text in SPECIALS])
    tokenizer.post_processor = LLAMA2_TEMPLATE
    return tokenizer


def mistral():
    vocab, merges = pieces(pre_tokenizers.Metaspace(prepend_scheme="never"), SPECIALS, True)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens([special(text) for text in SPECIALS])
    tokenizer.post_processor = LLAMA2_TEMPLATE
    return tokenizer


def metaspace():
    """Words with their own spaces, unknown characters, tokens that are looked for in normalized text."""
    vocab, merges = pieces(pre_tokenizers.Metaspace(prepend_scheme="never"), SPECIALS, False, 120)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=False))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([special("<unk>", normalized=True), special("<s>"), special("</s>")])
    tokenizer.add_tokens(["<tool>", "\ufb01", "word"])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>",
                                                             special_tokens=[("<s>", 1), ("</s>", 2)])
    return tokenizer


def gemma():
    """Tokens that reach across spaces; unknown characters in a row are one."""
    vocab, merges = pieces(None, ["<pad>", "</s>", "<s>", "<unk>"], False, 200)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", MARK)
    tokenizer.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([special(text) for text in ["<pad>", "</s>", "<s>", "<unk>"]])
    return tokenizer


def splits():
    """Every behaviour of splits, one behind the other."""
    pre = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split("--", "removed"),
        pre_tokenizers.Split(Regex(r"[\p{L}\w]+"), "merged_with_previous", invert=True),
        pre_tokenizers.Split(Regex(r"\s"), "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[\p{P}\p{S}]|\S(?=\W)"), "contiguous"),
        pre_tokenizers.Split(".", "merged_with_previous"),
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)])
    tokenizer = byte_level(pre, normalizers.NFD())
    tokenizer.add_special_tokens([special("<mask>", lstrip=True)])
    return tokenizer


KINDS = [gpt2, llama3, o200k, qwen2, gpt_neox, llama2, mistral, metaspace, gemma, splits]

# ---- writing -------------------------------------------------------------------------------------------------------


def crc(*arrays):
    value = 0
    for array in arrays:
        data = array.encode() if isinstance(array, str) else struct.pack(f"<{len(array)}i", *array)
        value = zlib.crc32(data, value)
    return value


def write(kind, strings):
    folder = FOLDER / kind.__name__
    folder.mkdir(exist_ok=True)
    tokenizer = kind()
    text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(text + "\n")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    checks, full = [], []
    for text in strings:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        around = tokenizer.encode(text).ids
        checks.append(crc(ids, around, tokenizer.decode(ids, skip_special_tokens=False)))
        full.append(ids)
    size = tokenizer.get_vocab_size()
    for i in range(IDS):
        draws = Draws(1 << 32 | i)
        ids = [draws.below(size) for _ in range(1 + draws.below(30))]
        checks.append(crc(tokenizer.decode(ids, skip_special_tokens=False)))
    data = struct.pack(f"<{len(checks)}I", *checks)
    for ids in full[:FULL]:
        data += struct.pack(f"<H{len(ids)}H", len(ids), *ids)
    (folder / "golden.bin").write_bytes(data)
    print(f"{kind.__name__}: {size} tokens, {sum(map(len, full))} ids")


def main():
    FOLDER.mkdir(exist_ok=True)
    parts = {"corpus": CORPUS, "fragments": FRAGMENTS, "spaces": SPACES, "ranges": RANGES}
    (FOLDER / "strings.json").write_text(json.dumps(parts, ensure_ascii=False) + "\n")
    strings = [string(i) for i in range(STRINGS)]
    print(f"{len(strings)} strings, {sum(len(s.encode()) for s in strings)} bytes")
    for kind in KINDS:
        if len(sys.argv) == 1 or kind.__name__ in sys.argv[1:]:
            write(kind, strings)


if __name__ == "__main__":
    main()
