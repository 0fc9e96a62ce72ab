#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recordings of a tiny Llama of `transformers`, forward and backward, on one rank and on two ranks of tensor parallelism,
which make tensor_parallel.tar.xz. Needs PyTorch 2.13 with gloo, transformers 5 and accelerate, and msprobe's collector on
PYTHONPATH. (The files have no stack.json: it holds the paths of the machine.)

usage: make_tensor_parallel.py FOLDER

one, one_bfloat16          the whole model
tp, tp_bfloat16            torch's parallelize_module with ColwiseParallel and RowwiseParallel
plan                       transformers' own tp_plan="auto": the vocabulary is split as well
tp_changed, one_changed    row 3 of rank 1's part of model.layers.1.mlp.up_proj.weight is 4 times as large
tp_tensor, tp_changed_tensor, one_tensor    a smaller model, with tensors
"""

import os
import pathlib
import shutil
import sys
import tarfile
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from transformers import LlamaConfig, LlamaForCausalLM

from msprobe.pytorch import PrecisionDebugger

CHANGED_LAYER, CHANGED_ROW, FACTOR = 1, 3, 4


def config(small):
    width = 16 if small else 64
    return LlamaConfig(
        vocab_size=width,
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        use_cache=False,
        attn_implementation="sdpa",
    )


def batch(small):
    tokens = torch.randint(0, 16 if small else 64, (1, 4) if small else (2, 8), generator=torch.Generator().manual_seed(5))
    return {"input_ids": tokens, "labels": tokens, "attention_mask": torch.ones_like(tokens)}


def make(small, dtype):
    torch.manual_seed(3)
    return LlamaForCausalLM(config(small)).to(dtype).train()


def split(model):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (2,))
    for layer in model.model.layers:
        columns = [f"self_attn.{name}_proj" for name in "qkv"] + ["mlp.gate_proj", "mlp.up_proj"]
        rows = ["self_attn.o_proj", "mlp.down_proj"]
        parallelize_module(
            layer, mesh, {name: ColwiseParallel() for name in columns} | {name: RowwiseParallel() for name in rows}
        )
    return model


def change(model, row):
    weight = model.model.layers[CHANGED_LAYER].mlp.up_proj.weight
    with torch.no_grad():
        (weight.to_local() if hasattr(weight, "to_local") else weight)[row] *= FACTOR


def work(rank, world, out, kind, changed, task, small, dtype, saved):
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT="29655", RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world)
    )
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = make(small, dtype)
    if kind == "plan":
        model = LlamaForCausalLM.from_pretrained(saved, tp_plan="auto", dtype=dtype, attn_implementation="sdpa").train()
        model.config.use_cache = False
    elif kind == "tp":
        split(model)
    if changed and rank == world - 1:
        change(model, CHANGED_ROW if world > 1 else config(small).intermediate_size // 2 + CHANGED_ROW)
    debugger = PrecisionDebugger(dump_path=out, task=task, level="mix")
    debugger.start(model)
    model(**batch(small)).loss.backward()
    debugger.stop()
    debugger.step()
    dist.barrier()
    dist.destroy_process_group()


def main(folder):
    folder = pathlib.Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        saved = f"{scratch}/model"
        make(False, torch.float32).save_pretrained(saved)
        for name, kind, task, dtype in (
            ("one", "one", "statistics", torch.float32),
            ("one_changed", "one", "statistics", torch.float32),
            ("tp", "tp", "statistics", torch.float32),
            ("tp_changed", "tp", "statistics", torch.float32),
            ("plan", "plan", "statistics", torch.float32),
            ("one_bfloat16", "one", "statistics", torch.bfloat16),
            ("tp_bfloat16", "tp", "statistics", torch.bfloat16),
            ("one_tensor", "one", "tensor", torch.float32),
            ("tp_tensor", "tp", "tensor", torch.float32),
            ("tp_changed_tensor", "tp", "tensor", torch.float32),
        ):
            world = 1 if kind == "one" else 2
            out = f"{scratch}/{name}"
            arguments = (world, out, kind, "changed" in name, task, task == "tensor", dtype, saved)
            mp.spawn(work, arguments, nprocs=world)
            shutil.rmtree(folder / name, ignore_errors=True)
            shutil.copytree(f"{out}/step0", folder / name, ignore=shutil.ignore_patterns("stack.json"))
    with tarfile.open(folder / "tensor_parallel.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                archive.add(path, path.name, filter=without_owner)


def without_owner(entry):
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(*sys.argv[1:])
