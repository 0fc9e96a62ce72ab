# SPDX-License-Identifier: Apache-2.0
"""Code that the parts of scripts/check-gpu share: where tensors are, and recordings of a piece of code."""

import glob
import json
import os
import tempfile
import warnings

import torch


class Skipped(Exception):
    """A part that cannot be run here; the text says why."""


class OnDevice(torch.Tensor):
    """Plain memory of the host that must not be read directly: a stand-in for a GPU."""

    is_cpu = False


class Place:
    """A GPU, or the stand-in for one."""

    def __init__(self, double):
        self.double = double
        self.device = "cpu" if double else "cuda"

    def measure_with(self, own):
        """Our own kernel, or PyTorch's, from now on. Before the other way around, as it stays on the device."""
        from msprobe.pytorch import gpu

        os.environ["MSPROBE_GPU_KERNEL"] = "1" if own else "0"
        gpu._opened.clear()
        if own and not self.double:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                used = gpu.use(torch.zeros(1, device=self.device).device)
            assert used, told[-1].message if told else "the collector's own kernel is not used"

    def put(self, tensor):
        return tensor.as_subclass(OnDevice) if self.double else tensor.to(self.device)

    def need_gpu(self, why):
        if self.double:
            raise Skipped("needs a GPU: " + why)

    def synchronize(self):
        if not self.double:
            torch.cuda.synchronize()


def record(function, level="L1", task="statistics", model=None, steps=1, **section):
    """Records `function()`, once a step; the trees of all steps, as dicts of entries, and the folder with them."""
    from msprobe import _native
    from msprobe.core import session
    from msprobe.pytorch import PrecisionDebugger, modules

    folder = tempfile.mkdtemp(prefix="msprobe-gpu-")
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"task": task, "dump_path": os.path.join(folder, "dump"), "level": level, "risk_level": "ALL",
                   task: section}, file)
    debugger = PrecisionDebugger(config_path=path)
    try:
        for _ in range(steps):
            debugger.start(model)
            function()
            debugger.stop()
            debugger.step()
    finally:
        modules.detach_all()
        PrecisionDebugger._instance = None
        session._rank[0] = None
        _native.close()
    trees = []
    for step in range(steps):
        ranks = glob.glob(os.path.join(folder, "dump", "step%d" % step, "*"))
        assert len(ranks) == 1, "step %d has %d folders" % (step, len(ranks))
        errors = os.path.join(ranks[0], "dump_error_info.log")
        if os.path.exists(errors):
            with open(errors, encoding="utf-8") as file:
                raise AssertionError("recording failed: " + file.read()[-800:])
        with open(os.path.join(ranks[0], "dump.json"), encoding="utf-8") as file:
            trees.append(json.load(file)["data"])
    return trees, folder


def record_values(tensors, **section):
    """The records of these tensors, as arguments of one call."""
    import types

    from msprobe.pytorch import PrecisionDebugger

    library = types.ModuleType("library")
    library.function = lambda *args: None

    def call():
        PrecisionDebugger.register_custom_api(library, "function")
        library.function(*tensors)
        PrecisionDebugger.restore_custom_api(library, "function")

    trees, folder = record(call, **section)
    return trees[0]["library.function.0.forward"]["input_args"], folder


def close(one, other, tolerance):
    """Numbers of two records: equal, or nearly."""
    if one is None or other is None or isinstance(one, bool):
        return one == other and type(one) is type(other)
    if one != one or other != other:
        return one != one and other != other
    return one == other or abs(one - other) <= tolerance * max(abs(one), abs(other))
