#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the folders beside it: checkpoints as newer PyTorch leaves them (written with 2.13, two or four processes with
gloo), and `whole.pt`, the same tensors in one piece.

usage: make_wild.py FOLDER
"""

import os
import pathlib
import shutil
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import FileSystemWriter, HuggingFaceStorageWriter
from torch.distributed.checkpoint.filesystem import SerializationFormat
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardedStateDictConfig, StateDictType, fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

WHOLE = {
    "rows": torch.arange(63.0).reshape(9, 7),
    "columns": torch.arange(35.0).reshape(5, 7) - 3,
    "same": torch.arange(6.0).reshape(2, 3).bfloat16(),
    "strided": torch.arange(24.0).reshape(8, 3),
    "plain": torch.ones(3),
}


class OneWeight(torch.nn.Module):
    def __init__(self, value):
        super().__init__()
        self.weight = torch.nn.Parameter(value.clone())


def start(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)


def mesh_of_four(rank, out):
    """FSDP2 over tensor parallelism, one file a rank."""
    start(rank, 4, 29611)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    layer = torch.nn.Linear(3, 8, bias=False)
    with torch.no_grad():
        layer.weight.copy_(WHOLE["strided"])
    parallelize_module(layer, mesh["tp"], ColwiseParallel())
    fully_shard(layer, mesh=mesh["dp"])
    state = {
        "rows": distribute_tensor(WHOLE["rows"], mesh, [Shard(0), Shard(0)]),
        "columns": distribute_tensor(WHOLE["columns"], mesh, [Shard(1), Replicate()]),
        "same": distribute_tensor(WHOLE["same"], mesh, [Replicate(), Replicate()]),
        "strided": layer.state_dict()["weight"],
        "plain": WHOLE["plain"],
    }
    torch.save(state, out / "dtensor" / f"model_world_size_4_rank_{rank}.pt")
    dist.destroy_process_group()


def two_ranks(rank, out):
    """Distributed checkpoints in safetensors files; FSDP1's sharded state."""
    start(rank, 2, 29612)
    mesh = init_device_mesh("cpu", (2,))
    placements = {"rows": Shard(0), "columns": Shard(1), "strided": Shard(0), "same": Replicate()}
    state = {name: distribute_tensor(WHOLE[name], mesh, [how]) for name, how in placements.items()}
    state["plain"] = WHOLE["plain"]
    pieces = {name: 1 + i % 2 for i, name in enumerate(WHOLE)}
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(
        str(out / "hf_writer"), save_distributed=True, fqn_to_index_mapping=pieces))
    safe = FileSystemWriter(out / "dcp_safetensors", serialization_format=SerializationFormat.SAFETENSORS)
    dcp.save(state, storage_writer=safe)
    flat = FullyShardedDataParallel(OneWeight(WHOLE["rows"]), device_id=torch.device("cpu"))
    config = ShardedStateDictConfig(_use_dtensor=False)
    with FullyShardedDataParallel.state_dict_type(flat, StateDictType.SHARDED_STATE_DICT, config):
        sharded = {"rows": flat.state_dict()["weight"]}
    torch.save(sharded, out / "sharded_tensor" / f"model_world_size_2_rank_{rank}.pt")
    dist.destroy_process_group()


def main(folder):
    out = pathlib.Path(folder)
    for name in ("dtensor", "hf_writer", "dcp_safetensors", "sharded_tensor"):
        shutil.rmtree(out / name, ignore_errors=True)
        (out / name).mkdir(parents=True)
    torch.save(WHOLE, out / "whole.pt")
    mp.spawn(mesh_of_four, (out,), 4)
    mp.spawn(two_ranks, (out,), 2)


if __name__ == "__main__":
    main(*sys.argv[1:])
