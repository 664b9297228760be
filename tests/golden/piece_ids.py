#!/usr/bin/python3
"""Golden ids of the sentencepiece library, for the kinds of tokenizer.model that src/tokenizer reads.

Trains a small model of each kind on tokenizers/corpus.txt and writes beside it what tokenizer_ids.py writes for the
tokenizers library, of the same strings:

    tokenizers/KIND/tokenizer.model  the model
    tokenizers/KIND/golden.bin       ids and texts

Control pieces have names that are in none of the strings, since the library does not look for them in a text; in
decoded text they are shown, which the library does when they are user-defined pieces. Made with sentencepiece 0.2.3.

    tests/golden/piece_ids.py [KIND ...]
"""
import struct
import sys

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tokenizer_ids import FOLDER, FULL, IDS, STRINGS, Draws, crc, string

CONTROLS = {"unk_piece": "<<unknown>>", "bos_piece": "<<begin>>", "eos_piece": "<<end>>"}
USER = ["<tool>", "\u2581\u2581\u2581\u2581", "a<mask>b", "\u00e9t", "\u00e9t\u00e9", "3.14", "--"]
# replaced, by what: ligatures, wide characters, spaces of other kinds, marks in order, nothing at all
RULES = [("\ufb01", "fi"), ("\u212b", "\u00c5"), ("e\u0301", "\u00e9"), ("E\u0301", "\u00c9"), ("\u3000", " "),
         ("\u00a0", " "), ("\t", " "), ("\n", " "), ("\r\n", " "), ("\u200b", ""), ("\u200d", ""), ("\u2026", "..."),
         ("\u0344", "\u0308\u0301"), ("\u1e9b\u0323", "\u1e69"), ("\U0001f469\u200d\U0001f469", "two"),
         ("\u2003", "  ")]
RULES += [(chr(0xff01 + i), chr(0x21 + i)) for i in range(94)]


def pieces_bpe():
    """As Llama 2 has it: bytes for what is unknown, all spaces kept."""
    return {"model_type": "bpe", "vocab_size": 1500, "byte_fallback": True, "split_digits": True,
            "normalization_rule_name": "identity", "remove_extra_whitespaces": False, "user_defined_symbols": USER,
            "allow_whitespace_only_pieces": True, "character_coverage": 0.995}


def pieces_unigram():
    """As T5 has it: characters replaced, spaces in a row one, unknown pieces."""
    rules = FOLDER / "rules.tsv"
    lines = ("\t".join(" ".join(f"{ord(c):X}" for c in text) for text in rule) for rule in RULES)
    rules.write_text("".join(line + "\n" for line in lines))
    return {"model_type": "unigram", "vocab_size": 1000, "normalization_rule_tsv": str(rules),
            "user_defined_symbols": USER, "character_coverage": 0.995}


KINDS = [pieces_bpe, pieces_unigram]


def train(kind, path):
    options = kind()
    sentencepiece.SentencePieceTrainer.train(
        input=str(FOLDER / "corpus.txt"), model_prefix=str(path.with_suffix("")), num_threads=1, hard_vocab_limit=False,
        minloglevel=2, **options, **CONTROLS)
    path.with_suffix(".vocab").unlink()
    (FOLDER / "rules.tsv").unlink(missing_ok=True)
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    for key in ["input", "model_prefix"]:
        model.trainer_spec.ClearField(key)  # where it was made
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    path.write_bytes(model.SerializeToString())
    return model


def showing(model):
    """The same with control pieces that are seen."""
    for piece in model.pieces:
        if piece.type == piece.CONTROL:
            piece.type = piece.USER_DEFINED
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def write(kind, strings):
    folder = FOLDER / kind.__name__
    folder.mkdir(exist_ok=True)
    shown = showing(train(kind, folder / "tokenizer.model"))
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    before = [model.bos_id()] if kind is pieces_bpe else []
    lists = [model.encode(text) for text in strings]
    checks = [crc(ids, before + ids, model.decode(ids)) for ids in lists]
    for i in range(IDS):
        draws = Draws(1 << 32 | i)
        ids = [draws.below(len(model)) for _ in range(1 + draws.below(30))]
        checks.append(crc(shown.decode(ids)))
    data = struct.pack(f"<{len(checks)}I", *checks)
    for ids in lists[:FULL]:
        data += struct.pack(f"<H{len(ids)}H", len(ids), *ids)
    (folder / "golden.bin").write_bytes(data)
    print(f"{kind.__name__}: {len(model)} pieces, {sum(map(len, lists))} ids")


def main():
    strings = [string(i) for i in range(STRINGS)]
    for kind in KINDS:
        if len(sys.argv) == 1 or kind.__name__ in sys.argv[1:]:
            write(kind, strings)


if __name__ == "__main__":
    main()
