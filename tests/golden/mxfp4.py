#!/usr/bin/python3
"""Experts in MXFP4 as gpt-oss is published, and what transformers reads of them, for tests/source/test_weight_mxfp4.c.

Writes beside it mxfp4.safetensors (any codes, scales of all sizes that are numbers) and mxfp4.crc: crc32 of the values
as floats, of each stack of matrices as linear layers have them, with outputs first. Made with transformers 5.24.

    tests/golden/mxfp4.py
"""
import pathlib
import zlib

import numpy as np
import safetensors.numpy
import torch
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

HERE = pathlib.Path(__file__).parent
EXPERTS = "model.layers.0.mlp.experts"
random = np.random.default_rng(4)
tensors, lines = {}, []
for name, (experts, rows, groups) in {"gate_up_proj": (3, 22, 4), "down_proj": (3, 10, 5)}.items():
    blocks = random.integers(0, 256, (experts, rows, groups, 16), dtype=np.uint8)
    scales = random.integers(0, 253, (experts, rows, groups), dtype=np.uint8)
    tensors |= {f"{EXPERTS}.{name}_blocks": blocks, f"{EXPERTS}.{name}_scales": scales,
                f"{EXPERTS}.{name}_bias": random.standard_normal((experts, rows)).astype(np.float32)}
    read = convert_moe_packed_tensors(torch.from_numpy(blocks), torch.from_numpy(scales), dtype=torch.float32)
    values = np.ascontiguousarray(read.transpose(1, 2).numpy(), dtype="<f4")
    assert values.shape == (experts, rows, 32 * groups)
    lines.append(f"{EXPERTS}.{name} {experts} {rows} {32 * groups} {zlib.crc32(values.tobytes())}")
safetensors.numpy.save_file(tensors, HERE / "mxfp4.safetensors", {"format": "pt"})
(HERE / "mxfp4.crc").write_text("\n".join(lines) + "\n")
