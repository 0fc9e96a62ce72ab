#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One small Llama-like model saved by the software that real checkpoints come from, and every pair compared.

usage: real_checkpoints.py MSPROBE [FOLDER]

PyTorch writes a plain file and distributed checkpoints on one and on four gloo ranks; safetensors and NumPy write
theirs, if installed; Megatron's rank files (2 tensor x 2 pipeline ranks) are sliced here by its rules and, if
megatron.core is installed, also loaded into its model on four ranks and saved by it, as rank files and as torch_dist.
Every pair has to be equal, and with one element moved by 1e-3 exactly that parameter has to be named.
"""

import argparse
import csv
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LAYERS, HIDDEN, FFN, HEADS, GROUPS, VOCABULARY = 4, 16, 24, 4, 2, 32
HEAD = HIDDEN // HEADS
TENSOR, PIPELINE = 2, 2
CHANGED = "model.layers.2.mlp.up_proj.weight"
CHANGED_NAMES = ("layers.2.mlp.up_proj.weight", "layers.2.mlp.linear_fc1.weight")
CONFIG = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "num_hidden_layers": LAYERS}


def make_weights(changed):
    import torch

    torch.manual_seed(7)
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(LAYERS):
        head = f"model.layers.{layer}"
        shapes |= {
            f"{head}.input_layernorm.weight": (HIDDEN,),
            f"{head}.self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
            f"{head}.self_attn.k_proj.weight": (GROUPS * HEAD, HIDDEN),
            f"{head}.self_attn.v_proj.weight": (GROUPS * HEAD, HIDDEN),
            f"{head}.self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
            f"{head}.post_attention_layernorm.weight": (HIDDEN,),
            f"{head}.mlp.gate_proj.weight": (FFN, HIDDEN),
            f"{head}.mlp.up_proj.weight": (FFN, HIDDEN),
            f"{head}.mlp.down_proj.weight": (HIDDEN, FFN),
        }
    shapes |= {"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY, HIDDEN)}
    weights = {name: torch.randn(shape) for name, shape in shapes.items()}
    if changed:
        weights[CHANGED][17, 5] += 1e-3
    return weights


def attention_rows(weights, layer):
    """Megatron's linear_qkv: the queries, the key and the value of one group after the other."""
    import torch

    q, k, v = (weights[f"model.layers.{layer}.self_attn.{x}_proj.weight"] for x in "qkv")
    groups = zip(q.chunk(GROUPS), k.chunk(GROUPS), v.chunk(GROUPS))
    return torch.cat([torch.cat(group) for group in groups])


def megatron_slices(weights, tensor, stage):
    """The parameters of the rank, by Megatron's published rules; layers are numbered from 0 in every stage."""
    import torch

    def part(whole, axis):
        return whole.chunk(TENSOR, dim=axis)[tensor].clone()

    state = {}
    if stage == 0:
        state["embedding.word_embeddings.weight"] = part(weights["model.embed_tokens.weight"], 0)
    for local in range(LAYERS // PIPELINE):
        layer = stage * (LAYERS // PIPELINE) + local
        there, here = f"model.layers.{layer}", f"decoder.layers.{local}"
        state[f"{here}.input_layernorm.weight"] = weights[f"{there}.input_layernorm.weight"]
        state[f"{here}.self_attention.linear_proj.weight"] = part(weights[f"{there}.self_attn.o_proj.weight"], 1)
        state[f"{here}.self_attention.linear_qkv.weight"] = part(attention_rows(weights, layer), 0)
        state[f"{here}.pre_mlp_layernorm.weight"] = weights[f"{there}.post_attention_layernorm.weight"]
        halves = [part(weights[f"{there}.mlp.{x}_proj.weight"], 0) for x in ("gate", "up")]
        state[f"{here}.mlp.linear_fc1.weight"] = torch.cat(halves)
        state[f"{here}.mlp.linear_fc2.weight"] = part(weights[f"{there}.mlp.down_proj.weight"], 1)
    if stage == PIPELINE - 1:
        state["decoder.final_layernorm.weight"] = weights["model.norm.weight"]
        state["output_layer.weight"] = part(weights["lm_head.weight"], 0)
    return state


def arguments():
    return argparse.Namespace(
        tensor_model_parallel_size=TENSOR,
        pipeline_model_parallel_size=PIPELINE,
        num_layers=LAYERS,
        hidden_size=HIDDEN,
        ffn_hidden_size=FFN,
        num_attention_heads=HEADS,
        num_query_groups=GROUPS,
        group_query_attention=True,
        kv_channels=HEAD,
        swiglu=True,
        num_experts=None,
        untie_embeddings_and_output_weights=True,
    )


def rank_file(folder, tensor, stage):
    path = folder / "iter_0000010" / f"mp_rank_{tensor:02}_{stage:03}"
    path.mkdir(parents=True, exist_ok=True)
    return path / "model_optim_rng.pt"


def save_rank(folder, tensor, stage, model):
    import torch

    state = {"args": arguments(), "checkpoint_version": 3.0, "iteration": 10, "model": model}
    torch.save(state, rank_file(folder, tensor, stage))


def start_ranks(rank, world, store):
    import torch.distributed as dist

    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world)}
    dist.init_process_group("gloo", init_method=f"file://{store.resolve()}", rank=rank, world_size=world)


def save_distributed(rank, world, store, folder, changed):
    """Shards by rows, by columns, by both, and copies."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    start_ranks(rank, world, store)
    state = make_weights(changed)
    if world > 1:
        line = init_device_mesh("cpu", (world,))
        square = init_device_mesh("cpu", (2, world // 2))
        for name, weight in state.items():
            if weight.dim() == 1:
                state[name] = distribute_tensor(weight, line, [Replicate()])
            elif "q_proj" in name:
                state[name] = distribute_tensor(weight, square, [Shard(0), Shard(1)])
            elif "down_proj" in name or "k_proj" in name:
                state[name] = distribute_tensor(weight, line, [Shard(1)])
            else:
                state[name] = distribute_tensor(weight, line, [Shard(0)])
    dcp.save({"model": state}, checkpoint_id=str(folder))
    dist.destroy_process_group()


def save_with_megatron(rank, world, store, ranks, torch_dist, changed):
    """The model of megatron.core takes the slices, so names and shapes are its own; then it saves."""
    import torch
    import torch.distributed as dist
    from megatron.core import dist_checkpointing, parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    start_ranks(rank, world, store)
    parallel_state.initialize_model_parallel(TENSOR, PIPELINE)
    config = TransformerConfig(
        num_layers=LAYERS,
        hidden_size=HIDDEN,
        ffn_hidden_size=FFN,
        num_attention_heads=HEADS,
        num_query_groups=GROUPS,
        tensor_model_parallel_size=TENSOR,
        pipeline_model_parallel_size=PIPELINE,
        pipeline_dtype=torch.float32,
        use_cpu_initialization=True,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        normalization="RMSNorm",
        add_bias_linear=False,
    )
    stage = parallel_state.get_pipeline_model_parallel_rank()
    tensor = parallel_state.get_tensor_model_parallel_rank()
    model = GPTModel(
        config=config,
        transformer_layer_spec=get_gpt_layer_local_spec(normalization="RMSNorm"),
        vocab_size=VOCABULARY,
        max_sequence_length=16,
        pre_process=stage == 0,
        post_process=stage == PIPELINE - 1,
        share_embeddings_and_output_weights=False,
        position_embedding_type="rope",
    )
    model.load_state_dict(megatron_slices(make_weights(changed), tensor, stage), strict=False)
    loaded = model.state_dict_for_save_checkpoint()
    for name, weight in megatron_slices(make_weights(changed), tensor, stage).items():
        assert torch.equal(loaded[name], weight), name
    save_rank(ranks, tensor, stage, loaded)
    if rank == 0:
        torch_dist.mkdir(parents=True)
    dist.barrier()
    # It waits for a device and asks for its number; this machine has no device.
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_device = lambda: "cpu"
    dist_checkpointing.save(model.sharded_state_dict(), str(torch_dist))
    dist.destroy_process_group()


def write_all(folder, changed, remarks):
    """The checkpoints by name: those with names of Hugging Face, and those with Megatron's."""
    import torch
    import torch.distributed.checkpoint
    from torch.multiprocessing import start_processes

    def start(save, arguments, nprocs):
        # The method is fork, because this process has imported already what each rank would import.
        start_processes(save, arguments, nprocs=nprocs, start_method="fork")

    torch.set_num_threads(1)  # further ones would be missing after a fork
    weights = make_weights(changed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    made = {"plain .pt": folder / "plain.pt"}
    torch.save(weights, made["plain .pt"])
    torch.save({"state_dict": weights, "optimizer": {"state": {0: {"exp_avg": torch.ones(3)}}}}, folder / "train.pth")
    made["training .pth"] = folder / "train.pth"
    try:
        from safetensors.torch import save_file

        made["safetensors"] = folder / "model.safetensors"
        save_file(weights, made["safetensors"], metadata={"format": "pt"})
        made["safetensors with an index"] = folder / "sharded"
        made["safetensors with an index"].mkdir(exist_ok=True)
        (folder / "sharded" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        index = {}
        for shard in range(3):
            name = f"model-{shard + 1:05}-of-00003.safetensors"
            part = {key: weight for i, (key, weight) in enumerate(weights.items()) if i % 3 == shard}
            save_file(part, folder / "sharded" / name)
            index |= dict.fromkeys(part, name)
        text = json.dumps({"metadata": {}, "weight_map": index})
        (folder / "sharded" / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    except ImportError:
        remarks.add("skipped: safetensors is not installed")
    for world in (1, 4):
        made[f"distributed on {world}"] = folder / f"dcp{world}"
        start(save_distributed, (world, folder / f"store{world}", made[f"distributed on {world}"], changed), nprocs=world)
        (folder / f"dcp{world}" / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    made["Megatron by its rules"] = folder / "megatron"
    for tensor, stage in itertools.product(range(TENSOR), range(PIPELINE)):
        save_rank(made["Megatron by its rules"], tensor, stage, megatron_slices(weights, tensor, stage))
    (folder / "megatron" / "latest_checkpointed_iteration.txt").write_text("10", encoding="utf-8")
    try:
        import megatron.core  # noqa: F401

        ranks, torch_dist = folder / "megatron_core", folder / "torch_dist" / "iter_0000010"
        start(save_with_megatron, (TENSOR * PIPELINE, folder / "store_megatron", ranks, torch_dist, changed), nprocs=4)
        torch.save({"args": arguments(), "iteration": 10}, torch_dist / "common.pt")
        for root in (ranks, torch_dist.parent):
            (root / "latest_checkpointed_iteration.txt").write_text("10", encoding="utf-8")
        made["megatron.core rank files"] = ranks
        made["megatron.core torch_dist"] = torch_dist.parent
    except ImportError:
        remarks.add("skipped: megatron.core is not installed")
    return made


def statuses(msprobe, first, second, scratch):
    details = scratch / "details.csv"
    command = [msprobe, "-q", "ckpt_compare", first, second, "-o", scratch / "out.json", "--details", details]
    subprocess.run([*command, "--overwrite"], check=True)
    with open(details, encoding="utf-8", newline="") as file:
        return {row["Name"]: row["Status"] for row in csv.DictReader(file)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("msprobe")
    parser.add_argument("folder", nargs="?")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: torch is not installed, so there are no real checkpoints")
        return 0
    msprobe = str(pathlib.Path(options.msprobe).resolve())
    remarks = set()
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(options.folder or scratch)
        base = write_all(root / "base", False, remarks)
        changed = write_all(root / "changed", True, remarks)
        for first, second in itertools.product(base, base):
            found = statuses(msprobe, base[first], base[second], pathlib.Path(scratch))
            odd = {name: status for name, status in found.items() if status != "equal"}
            if odd:
                failures += 1
                print(f"{first} against {second}: not equal: {odd}")
            found = statuses(msprobe, base[first], changed[second], pathlib.Path(scratch))
            odd = {name for name, status in found.items() if status != "equal"}
            if len(odd) != 1 or not next(iter(odd)).endswith(CHANGED_NAMES):
                failures += 1
                print(f"{first} against {second}, changed: named {odd}")
    for remark in sorted(remarks):
        print(remark)
    print(f"{len(base)} kinds of checkpoint of torch {torch.__version__}, {len(base) ** 2} pairs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
