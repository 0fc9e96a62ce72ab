# SPDX-License-Identifier: Apache-2.0
"""One training of which some steps are recorded, two as a rule, in a separate process, forked off one that has PyTorch
loaded.

Kernels are chosen by what PyTorch and its libraries look at when they are first used: the parent must not have
computed anything.
"""

import contextlib
import json
import os
import pathlib
import sys
import traceback

import torch

import recorders
from planting import Run, spoiled_updates

# name -> (environment, what is done in the process)
KERNELS = {
    "avx512": ({}, None),
    "avx2": ({"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}, None),
    "plain": ({"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}, None),
    "native": ({"MKL_CBWR": "SSE4_2"}, "no_mkldnn"),
    "two_threads": ({"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX"}, "two_threads"),
    "channels_last": ({"ATEN_CPU_CAPABILITY": "avx2"}, "channels_last"),
    "math_attention": ({"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "COMPATIBLE"}, "math_attention"),
    "cuda": ({}, "cuda"),
    "cuda_tf32": ({}, "cuda_tf32"),
}


def settings_of(task, level, risk_level, folder, steps=()):
    return {"task": task, "dump_path": str(folder), "level": level, "risk_level": risk_level, "rank": [],
            "step": list(steps), task: {"scope": [], "list": []}}


def record(make_bench, seed, kernel, fault, folder, task, rank=0):
    """Trains one rank and records into `folder`. To be called once in a process."""
    special = KERNELS[kernel][1]
    torch.set_num_threads(2 if special == "two_threads" else 1)
    if special == "no_mkldnn":
        torch.backends.mkldnn.enabled = False
    if special == "cuda_tf32":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    elif special == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    bench = make_bench()
    bench.device = "cuda" if kernel.startswith("cuda") else "cpu"
    bench.rank = rank
    if bench.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}.meeting", rank=rank,
                                             world_size=bench.ranks)
    torch.manual_seed(seed)
    model = bench.distribute(bench.build())
    if special == "channels_last":
        model = model.to(memory_format=torch.channels_last)
    model = model.to(bench.device)
    run = Run(bench, model, bench.optimizer(model), since=fault.since if fault else 0)
    plant = fault.plant if fault is not None and fault.rank in (None, rank) else None
    planted_at = 0 if hasattr(plant, "waits") else run.since
    if plant and planted_at == 0:
        _planted(run, plant)  # below a recorder that wraps functions as soon as it is made

    from msprobe.pytorch import PrecisionDebugger

    config = pathlib.Path(f"{folder}.{rank}.json")
    # The steps are set only where it matters: a recorder that counts has more to do.
    steps = bench.recorded_steps if bench.recorded_steps[0] else ()
    config.write_text(json.dumps(settings_of(task, "mix", bench.risk_level, folder, steps)), encoding="utf-8")
    debugger = PrecisionDebugger(config_path=str(config))
    with _attention(special):
        for step in range(bench.recorded_steps[-1] + 1):
            run.step = step
            if plant and step == planted_at > 0:
                _planted(run, plant)
            _train(run, debugger, seed, special)
    config.unlink()
    if bench.ranks > 1:
        torch.distributed.barrier()
        pathlib.Path(f"{folder}.meeting").unlink(missing_ok=True)
    if getattr(run, "spoiled", True) is False:
        raise RuntimeError("the fault was not met")


def _planted(run, plant):
    plant(run)
    # Modules that a fault has exchanged may have brought other parameters.
    known = {id(p) for group in run.optimizer.param_groups for p in group["params"]}
    if known != {id(p) for p in run.model.parameters()}:
        run.optimizer = run.bench.optimizer(run.model)


def _train(run, debugger, seed, special):
    bench, model = run.bench, run.model
    torch.manual_seed(1000 * seed + run.step)
    batch = bench.batch(torch.Generator().manual_seed(100 * seed + run.step))
    if special == "channels_last" and "images" in batch:
        batch["images"] = batch["images"].contiguous(memory_format=torch.channels_last)
    for change in run.batch_changes:
        change(batch, run.step)
    batch = _moved(batch, bench.device)
    debugger.start(model, **({"rank_id": bench.rank} if recorders.TAKES_RANK else {}))
    run.optimizer.zero_grad()
    with torch.device(bench.device) if bench.device != "cpu" else contextlib.nullcontext():
        bench.gradients(model, batch)
    if not bench.records_optimizer:
        debugger.stop()
    bench.finish(model)
    with spoiled_updates(run):
        run.optimizer.step()
    debugger.stop()
    debugger.step()


def _moved(data, device):
    if isinstance(data, dict):
        return {name: _moved(value, device) for name, value in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_moved(value, device) for value in data)
    return data.to(device) if isinstance(data, torch.Tensor) else data


def _attention(special):
    if special != "math_attention":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    return sdpa_kernel(SDPBackend.MATH)


def forked(environment, works):
    """Calls each of `works` in a separate child process with this environment; raises if one fails."""
    sys.stdout.flush()
    sys.stderr.flush()
    children = [_fork(environment, work) for work in works]
    if any([os.waitpid(child, 0)[1] for child in children]):
        raise RuntimeError("a recording failed")


def _fork(environment, work):
    child = os.fork()
    if child != 0:
        return child
    status = 1
    try:
        os.environ.update(environment)
        work()
        recorders.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)
