#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes `fsdp_dtensor` beside it, in the form in which Megatron-core 0.14 saves a model under Megatron-FSDP
(--ckpt-format fsdp_dtensor): names below two wrappers, gated projections in halves; and `fsdp_whole.safetensors`, the
same model under the names of today. Written with PyTorch 2.13.

usage: make_fsdp_dtensor.py FOLDER
"""

import json
import pathlib
import shutil
import struct
import sys

import torch
import torch.distributed.checkpoint as dcp

HIDDEN = 4


def model():
    torch.manual_seed(1)
    tensors = {"embedding.word_embeddings.weight": torch.randn(6, HIDDEN), "decoder.final_layernorm.weight": torch.randn(HIDDEN)}
    for layer in range(2):
        head = f"decoder.layers.{layer}."
        tensors[head + "input_layernorm.weight"] = torch.randn(HIDDEN)
        tensors[head + "self_attention.linear_qkv.weight"] = torch.randn(3 * HIDDEN, HIDDEN)
        tensors[head + "self_attention.linear_proj.weight"] = torch.randn(HIDDEN, HIDDEN)
        tensors[head + "pre_mlp_layernorm.weight"] = torch.randn(HIDDEN)
        tensors[head + "mlp.linear_fc1.weight"] = torch.randn(4 * HIDDEN, HIDDEN)
        tensors[head + "mlp.linear_fc2.weight"] = torch.randn(HIDDEN, 2 * HIDDEN)
    return tensors


def as_saved(tensors):
    """TransformerEngine's names of norms, and the halves of swiglu."""
    saved = {}
    for name, tensor in tensors.items():
        name = name.replace("input_layernorm.", "self_attention.linear_qkv.layer_norm_")
        name = name.replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_")
        if name.endswith("linear_fc1.weight"):
            saved[name + "_w"], saved[name + "_v"] = (half.clone() for half in tensor.chunk(2))
        else:
            saved[name] = tensor
    return {"model.module.module." + name: tensor for name, tensor in saved.items()}


def save_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def main(folder):
    out = pathlib.Path(folder)
    shutil.rmtree(out / "fsdp_dtensor", ignore_errors=True)
    dcp.save(as_saved(model()), checkpoint_id=out / "fsdp_dtensor")
    save_safetensors(out / "fsdp_whole.safetensors", model())


if __name__ == "__main__":
    main(*sys.argv[1:])
