#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: monitor_parity.py OURS PYTHON [SCENARIO...]

The same trainings without a monitor, with ours (the folder OURS in PYTHONPATH) and with the Python tool's (PYTHON has it):
losses bit for bit the same, rows equal to 1e-6, but for what docs/differences.md tells. Exit status 1 otherwise.
"""

import atexit
import csv
import glob
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

RANKS = {"plain": 1, "accumulation": 1, "copies": 1, "ddp": 2, "fsdp2": 2}
STEPS = 4
CONFIG = {"targets": {}, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
          "param_distribution": True, "ops": ["norm", "min", "max", "mean", "nans", "zeros"], "ndigits": 12,
          "step_count_per_record": 100}
# Quantities of fsdp2 (W12): there the Python tool has shape, mean and share of zeros of the whole beside the local norm.
MIXED = ("param_origin", "param_updated", "exp_avg", "exp_avg_sq")
MIXED_COLUMNS = ("shape", "mean", "zeros")


def child(scenario, mode, folder, rank):
    sys.modules["megatron"] = None  # W2
    os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(folder, "out")
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    if RANKS[scenario] > 1:
        dist.init_process_group("gloo", init_method="file://" + os.path.join(folder, "store"), rank=rank, world_size=2)
    torch.manual_seed(6)
    model = nn.Sequential(nn.Embedding(11, 8), nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))
    if scenario == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    elif scenario == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (2,))
        fully_shard(model[1], mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif scenario == "copies":
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if scenario == "copies":
        optimizer = with_copies(torch, list(model.parameters()))
    micro_batches = 4 if scenario == "accumulation" else 1
    if mode != "bare":
        from msprobe.pytorch import TrainerMon
        monitor = TrainerMon(os.path.join(folder, "config.json"), params_have_main_grad=False)
        monitor.set_monitor(model, optimizer, grad_acc_steps=micro_batches)
    losses = []
    for step in range(STEPS):
        for parameter in model.parameters():
            parameter.grad = None
        for micro in range(micro_batches):
            generator = torch.Generator().manual_seed(1000 * step + 10 * micro + rank)
            tokens = torch.randint(0, 11, (3, 5), generator=generator)
            loss = model(tokens).float().pow(2).mean()
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
    print(json.dumps(losses), flush=True)
    if RANKS[scenario] > 1:
        dist.barrier()
        dist.destroy_process_group()


def with_copies(torch, parameters):
    """As Megatron's: bfloat16 in the model, Adam on copies in float32."""
    copies = [parameter.detach().float().clone() for parameter in parameters]

    class Float16OptimizerWithFloat16Params:
        def __init__(self):
            self.float16_groups, self.fp32_from_float16_groups = [parameters], [copies]
            self.optimizer = torch.optim.Adam(copies, lr=0.01)

        def step(self):
            for parameter, copy in zip(parameters, copies):
                copy.grad = parameter.grad.float()
            self.optimizer.step()
            with torch.no_grad():
                for parameter, copy in zip(parameters, copies):
                    parameter.copy_(copy)

    return Float16OptimizerWithFloat16Params()


def train(scenario, mode, ours, python, folder):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if mode == "ours":
        environment["PYTHONPATH"] = ours
    os.makedirs(folder)
    config = dict(CONFIG, monitor_mbs_grad=scenario == "accumulation", xy_distribution=scenario != "fsdp2")
    pathlib.Path(folder, "config.json").write_text(json.dumps(config), encoding="utf-8")
    children = [subprocess.Popen([python, "-W", "ignore", __file__, "--child", scenario, mode, folder, str(rank)],
                                 cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                for rank in range(RANKS[scenario])]
    losses = []
    for one in children:
        output, errors = one.communicate(timeout=600)
        if one.returncode != 0:
            raise SystemExit(f"{scenario}, {mode}: status {one.returncode}\n{output[-1000:]}{errors[-3000:]}")
        losses.append(output.splitlines()[-1])
    return losses


def rows(folder):
    found = {}
    for path in sorted(glob.glob(os.path.join(folder, "out", "*-rank*", "*.csv"))):
        rank = path.split("-rank")[1].split("-")[0]
        prefix = os.path.basename(path).rsplit("_", 1)[0]
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = (prefix, rank, row["vpp_stage"], row["name"], row["step"], row.get("micro_step"))
                if key in found:
                    raise SystemExit(f"{path}: {key} comes twice")
                found[key] = row
    return found


def is_equal(one, other):
    if one == other:
        return True
    try:
        one, other = float(one), float(other)
    except ValueError:
        return False
    return (math.isnan(one) and math.isnan(other)) or abs(one - other) <= 1e-6 * max(abs(one), abs(other)) + 1e-11


def compare(scenario, mine, theirs):
    wrong = [f"only the Python tool has {key}" for key in theirs if key not in mine]
    wrong += [f"only we have {key}" for key in mine if key not in theirs]
    for key in mine.keys() & theirs.keys():
        for column, value in theirs[key].items():
            if scenario == "fsdp2" and column in MIXED_COLUMNS and key[0] in MIXED:
                continue
            if not is_equal(mine[key].get(column), value):
                wrong.append(f"{key} {column}: {mine[key].get(column)}, in the Python tool {value}")
    return wrong


def main():
    if sys.argv[1] == "--child":
        child(*sys.argv[2:5], int(sys.argv[5]))
        # A thread of gloo that lets go of its tensors while the interpreter is taken down may abort the process.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(0)
    ours, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    failed = False
    for scenario in sys.argv[3:] or RANKS:
        with tempfile.TemporaryDirectory(prefix="msprobe_peer_") as folder:
            losses = {mode: train(scenario, mode, ours, python, os.path.join(folder, mode))
                      for mode in ("bare", "ours", "theirs")}
            mine, theirs = rows(os.path.join(folder, "ours")), rows(os.path.join(folder, "theirs"))
        wrong = compare(scenario, mine, theirs)
        if losses["ours"] != losses["bare"]:
            wrong.append("the losses are not those without a monitor")
        if not theirs:
            wrong.append("the Python tool wrote nothing")
        print(f"{scenario}: {len(mine)} rows, {len(wrong)} differ")
        for text in wrong[:20]:
            print("  " + text)
        failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
