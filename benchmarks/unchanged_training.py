#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small models of many families with and without recording: the training must be the same bit for bit.

    benchmarks/unchanged_training.py [--only NAME,...] [--levels NAME,...] [--gradients] [--jobs N] [--json FILE]
    benchmarks/unchanged_training.py --list

PYTHONPATH has msprobe (build/python) and what the families of training_families.py need: transformers, timm and
diffusers; families whose package is missing are not tried. Each training has three steps on one thread, in a process of
its own. Two trainings without recording must agree. Those with it are compared with them, one for each level (task
statistics, or tensor) and one with the monitor: losses, the gradients of all parameters in each step, and what the
model holds at the end. A cell is `=`, the number of parameters whose gradient differs, or `!` for anything else.
--gradients: the gradients that level L0 records of modules are compared with those that PyTorch's full backward hooks
see in another run; `-`: these raise. Exit status 1: something differs.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile
import warnings

import torch

from training_families import FAMILIES, UNTRIED, Draw, use_torchvision

STEPS = 3
LIMIT = 120  # seconds of one training
CLOSE = 1e-5  # of a gradient's norm
ROUNDING = 1e-9  # of the largest norm: what is left of gradients that cancel
LINES = 6  # printed about one family
RECORDED = {
    "L0": {"level": "L0"}, "L1": {"level": "L1"}, "mix": {"level": "mix"},
    "L0:tensor": {"level": "L0", "task": "tensor"}, "L1:tensor": {"level": "L1", "task": "tensor"},
    "mix:tensor": {"level": "mix", "task": "tensor"}, "debug": {"level": "debug"},
}
MONITORED = {"targets": {}, "all_xy": True, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
             "param_distribution": True, "ur_distribution": True, "mg_direction": True,
             "ops": ["norm", "min", "max", "mean", "nans"]}
LEVELS = [*RECORDED, "monitor"]
# In memory where that is possible: a file system slows down with thousands of files that come and go.
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None
CONTEXT = multiprocessing.get_context("fork")
BY_NAME = {family.name: family for family in FAMILIES}

# ---------------------------------------------------------------------- recorders


class Nothing:
    """The stand-in for a recorder in a training that is not recorded."""

    def start(self, model):
        pass

    def save(self, output):
        pass

    def stop(self):
        pass

    def problem(self):
        """Why the recording is not worth comparing; None if it is."""


class Debugger(Nothing):
    def __init__(self, settings, folder):
        from msprobe.pytorch import PrecisionDebugger

        self.folder = pathlib.Path(folder)
        path = self.folder / "config.json"
        path.write_text(json.dumps({"task": "statistics", "dump_path": folder, "risk_level": "ALL", **settings}))
        self.debugger = PrecisionDebugger(config_path=str(path))

    def start(self, model):
        self.debugger.start(model)

    def save(self, output):
        self.debugger.save(output, "output")

    def stop(self):
        self.debugger.stop()
        self.debugger.step()

    def dump(self, step):
        found, = self.folder.glob(f"step{step}/*/d*.json")
        return json.loads(found.read_text())["data"]

    def problem(self):
        for log in self.folder.glob("step*/*/dump_error_info.log"):
            return "recording failed: " + log.read_text().split("\ncall stack\n")[0].splitlines()[-1]
        return None if all(self.dump(step) for step in range(STEPS)) else "nothing was recorded"


class Monitor(Nothing):
    def __init__(self, model, optimizer, folder):
        from msprobe.pytorch import TrainerMon

        self.folder = pathlib.Path(folder)
        os.environ["MONITOR_OUTPUT_DIR"] = folder
        path = self.folder / "config.json"
        path.write_text(json.dumps(MONITORED))
        self.monitor = TrainerMon(str(path), params_have_main_grad=False)
        self.monitor.set_monitor(model, optimizer=optimizer, grad_acc_steps=1)

    def problem(self):
        self.monitor.stop()
        found = {path.name.split("_0-")[0] for path in self.folder.rglob("*.csv")}
        missing = {"actv", "actv_grad", "grad_unreduced", "grad_reduced"} - found
        return f"not recorded: {', '.join(sorted(missing))}" if missing else None


# ---------------------------------------------------------------------- training


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="msprobe_unchanged_", dir=SCRATCH)


def digest(tensor):
    """The shape, type and bytes of a tensor in short."""
    if tensor is None:
        return None
    if tensor.is_sparse:
        return [digest(tensor._indices()), digest(tensor._values())]
    digested = hashlib.blake2b(f"{tuple(tensor.shape)} {tensor.dtype}".encode(), digest_size=12)
    digested.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digested.hexdigest()


def build(family):
    """A model away from its initial values: behind zeros, as at the end of residual branches, no gradient comes."""
    random.seed(0)
    torch.manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    model = family.build().train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return model


def forward(family, model, step):
    inputs = family.inputs(Draw(step), model)
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def floating(value):
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    elements = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for element in elements for tensor in floating(element)]


def loss_of(output):
    """The model's own loss, or how far its outputs are from one."""
    if isinstance(output, dict) and output.get("loss") is not None:
        return output["loss"]
    return sum((tensor.float() - 1).square().mean() for tensor in floating(output))


def train(name, level=None):
    """{"parameters": how many, "problem": of the recording, "steps": [{name: digest}], "end": {name: digest}}"""
    family = BY_NAME[name]
    model = build(family)
    optimizer = family.optimizer(model.parameters())
    steps = []
    with scratch_folder() as folder:
        recorder = (Nothing() if level is None else Monitor(model, optimizer, folder) if level == "monitor" else
                    Debugger(RECORDED[level], folder))
        for step in range(STEPS):
            recorder.start(model)
            optimizer.zero_grad()
            output = forward(family, model, step)
            recorder.save(output)
            loss = loss_of(output)
            loss.backward()
            optimizer.step()
            recorder.stop()
            steps.append({"loss": digest(loss), **{key: digest(one.grad) for key, one in model.named_parameters()}})
        problem = recorder.problem()
    return {"parameters": sum(one.numel() for one in model.parameters()), "problem": problem, "steps": steps,
            "end": {key: digest(one) for key, one in model.state_dict().items() if isinstance(one, torch.Tensor)}}


def differences(bare, recorded):
    """How many parameters have another gradient, and in one line what else differs; (0, None): nothing does."""
    found = [(step, key) for step, (one, other) in enumerate(zip(bare["steps"], recorded["steps"]))
             for key in one if one[key] != other[key]]
    gradients = [(step, key) for step, key in found if key != "loss"]
    parts = []
    if gradients:
        parts.append("gradients from step %d on, first %s" % gradients[0])
    if len(found) > len(gradients):
        parts.append("losses from step %d on" % next(step for step, key in found if key == "loss"))
    ends = [key for key, value in bare["end"].items() if recorded["end"].get(key) != value]
    if ends:
        parts.append(f"{len(ends)} of {len(bare['end'])} tensors at the end, first {ends[0]}")
    return len({key for _, key in gradients}), "; ".join(parts) or None


# ---------------------------------------------------------------------- gradients of modules


def statistics(gradient):
    if gradient is None:
        return None
    wide = gradient.detach().double()
    return {"Max": wide.max().item(), "Min": wide.min().item(), "Mean": wide.mean().item(), "Norm": wide.norm().item()}


def build_hooked(family, in_place):
    """A model. Not `in_place`: activations and `+=` make new tensors; PyTorch's hooks forbid some changes."""
    model = build(family)
    if not in_place:
        torch.Tensor.__iadd__ = torch.Tensor.__add__
        torch.Tensor.__imul__ = torch.Tensor.__mul__
        for module in model.modules():
            if getattr(module, "inplace", False):
                module.inplace = False
    return model


def recorded_gradients(name, in_place):
    """{"path.Class.call": an entry of dump.json} of the first step."""
    family = BY_NAME[name]
    model = build_hooked(family, in_place)
    with scratch_folder() as folder:
        recorder = Debugger({"level": "L0", "precision": "high"}, folder)
        recorder.start(model)
        loss_of(forward(family, model, 0)).backward()
        recorder.stop()
        return {key[len("Module."):].replace(".backward.", "."): entry for key, entry in recorder.dump(0).items()
                if ".backward." in key}


class Call:
    """One call of a module, and what PyTorch's hook sees of its backward."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.places = {"input": [], "output": places_in(inputs)}
        self.seen = {}  # by "input" and "output"
        self.memory = places_of_memory(inputs)
        self.is_identity = False
        self.is_kept = False  # perhaps, by a hook of the model's own: a gradient of that passes PyTorch's hook by

    def returned(self, outputs):
        self.places["input"] = places_in(outputs)
        self.is_identity = not self.memory.isdisjoint(places_of_memory(outputs))


def places_of_memory(values):
    return {value.data_ptr() for value in values if isinstance(value, torch.Tensor)}


def places_in(values):
    """For each tensor of a record, its position in the tuples of PyTorch's hooks; None: it is inside another value."""
    if not torch.is_grad_enabled():
        return []
    places = []
    for position, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            places += [position] if value.requires_grad else []
        else:
            in_place = isinstance(value, (list, dict))
            places += [None] * sum(tensor.grad_fn is not None or not in_place for tensor in floating(value))
    return places


class Watched:
    """A module with hooks that know which call they belong to."""

    def __init__(self, path, module, calls):
        self.name = f"{path}.{type(module).__name__}"
        self.module = module
        self.calls = calls
        self.count = 0
        self.handle = None
        self.expect()
        module.register_forward_pre_hook(self.before)
        module.register_forward_hook(self.after)

    def expect(self):
        """PyTorch takes the hook of a call before it calls this class's hooks: a new one is for the next call."""
        name = f"{self.name}.{self.count}"

        def hook(module, grad_input, grad_output):
            self.calls[name].seen = {"input": [statistics(one) for one in grad_output],
                                     "output": [statistics(one) for one in grad_input]}

        if self.handle is not None:
            self.handle.remove()
        self.handle = self.module.register_full_backward_hook(hook)

    def before(self, module, args):
        self.current = self.calls[f"{self.name}.{self.count}"] = Call(args)
        self.count += 1
        self.expect()

    def after(self, module, args, output):
        self.current.returned(output if isinstance(output, tuple) else (output,))
        self.current.is_kept = len(module._forward_hooks) > 1


def hooked_gradients(name, in_place):
    """{"path.Class.call": what its Call holds, and to how many calls one of its inputs was given}"""
    family = BY_NAME[name]
    model = build_hooked(family, in_place)
    calls = {}
    for path, module in model.named_modules():
        if module is not model:
            Watched(path, module, calls)
    loss_of(forward(family, model, 0)).backward()
    given = collections.Counter(id(value) for call in calls.values() for value in call.inputs)
    return {key: {"places": call.places, "seen": call.seen, "is_identity": call.is_identity, "is_kept": call.is_kept,
                  "given": max((given[id(one)] for one in call.inputs if isinstance(one, torch.Tensor)), default=0)}
            for key, call in calls.items()}


def is_close(one, other, least):
    one = {**one, "Norm": abs(one["Norm"])}  # that of a tensor without dimensions is recorded with its sign
    scale = max(CLOSE * max(one["Norm"], other["Norm"]), least)
    return all(abs(one[key] - other[key]) <= scale or (math.isnan(one[key]) and math.isnan(other[key])) for key in other)


def verdict(ours, theirs, least, is_noted, is_kept):
    if all(one is None or one["Norm"] == 0 for one in (ours, theirs)):  # PyTorch's hooks make zeros where none comes
        return "equal"
    if ours and theirs and is_close(ours, theirs, least):
        return "equal"
    if is_noted:
        return "noted"
    if is_kept:
        return "not seen by PyTorch's hooks"
    return "not in PyTorch's hooks" if theirs is None else "not recorded" if ours is None else "different"


def compare_gradients(recorded, hooked):
    """A count of each verdict, and a line on each gradient that is different or not recorded."""
    counts, lines = collections.Counter(), []
    counts["not in PyTorch's hooks"] = len(recorded.keys() - hooked.keys())
    norms = [one["Norm"] for call in hooked.values() for side in call["seen"].values() for one in side if one]
    least = ROUNDING * max((norm for norm in norms if math.isfinite(norm)), default=0)
    for key, call in hooked.items():
        entry = recorded.get(key, {})
        for side, meaning in (("input", "of output"), ("output", "of input")):
            ours, places = entry.get(side, []), call["places"][side]
            if not call["seen"]:
                counts["not seen by PyTorch's hooks"] += len(ours)
                continue
            if ours and len(ours) != len(places):
                counts["different"] += 1
                lines.append(f"{key}: {len(ours)} gradients {meaning}s, PyTorch's hooks see {len(places)}")
                continue
            has_notes = any(one and "gradient_of" in one for one in ours)
            for position, place in enumerate(places):
                one = ours[position] if ours else None
                if place is None:
                    counts["not seen by PyTorch's hooks"] += one is not None
                    continue
                theirs = call["seen"][side][place]
                found = verdict(one, theirs, least, "gradient_of" in one if one else has_notes,
                                side == "input" and call["is_kept"])
                counts[found] += 1
                if found in ("different", "not recorded"):
                    lines.append(f"{key}: gradient {meaning} {position} is {found}: "
                                 f"norm {one['Norm'] if one else None}, PyTorch's {theirs['Norm']}"
                                 + (", the module returns its input" if call["is_identity"] else "")
                                 + (f", given to {call['given']} modules" if call["given"] > 1 else ""))
    return dict(+counts), lines


# ---------------------------------------------------------------------- processes


def in_child(function, *arguments):
    """(what the function returns in a separate process, None), or (None, why it did not)."""
    receiver, sender = CONTEXT.Pipe(False)
    process = CONTEXT.Process(target=answer, args=(sender, function, arguments))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(LIMIT) else (None, f"no end within {LIMIT} s")
    except EOFError:
        process.join()
        return None, f"process ended with status {process.exitcode}"
    finally:
        process.kill()
        process.join()


def answer(sender, function, arguments):
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        result = function(*arguments), None
    except Exception as error:
        result = None, " ".join(f"{type(error).__name__}: {error}".split())[:200]
    sender.send(result)


def try_family(name, levels, with_gradients):
    result = {"name": name, "levels": {}, "lines": []}
    try:
        BY_NAME[name].prepare()
    except Exception as error:
        return {**result, "why": f"cannot be imported: {error}"}
    bare, why = in_child(train, name)
    again, why_again = in_child(train, name) if bare else (None, None)
    if why or why_again:
        return {**result, "why": why or why_again}
    result["parameters"] = bare["parameters"]
    if bare != again:
        return {**result, "why": "not deterministic: " + (differences(bare, again)[1] or "")}
    for level in levels:
        recorded, why = in_child(train, name, level)
        count, line = differences(bare, recorded) if recorded else (0, f"raises {why}")
        line = line or recorded["problem"]
        result["levels"][level] = "=" if line is None else str(count) if count else "!"
        if line is not None:
            result["lines"].append(f"{level}: {line}")
    if with_gradients:
        result["levels"]["gradients"], result["gradients"], lines = try_gradients(name)
        result["lines"] += [f"gradients: {line}" for line in lines]
    return result


def try_gradients(name):
    for in_place in (True, False):
        hooked, why = in_child(hooked_gradients, name, in_place)
        if hooked is not None:
            break
    else:
        return "-", {}, [f"not compared, PyTorch's hooks raise {why}"]
    recorded, why = in_child(recorded_gradients, name, in_place)
    if why:
        return "!", {}, [f"recording raises {why}"]
    counts, lines = compare_gradients(recorded, hooked)
    return str(len(lines)) if lines else "=", counts, lines


# ---------------------------------------------------------------------- what is printed


def show(result, columns, width):
    if "why" in result:
        print(f"{result['name']:{width}}  {result['why']}", flush=True)
        return
    cells = " ".join(f"{result['levels'][column]:>{len(column)}}" for column in columns)
    print(f"{result['name']:{width}} {result['parameters']:>10} {cells}", flush=True)
    for line in result["lines"][:LINES]:
        print("    " + line)
    if len(result["lines"]) > LINES:
        print(f"    and {len(result['lines']) - LINES} more")


def show_totals(results, columns):
    tried = [result for result in results if "why" not in result]
    unsteady = sum(result.get("why", "").startswith("not deterministic") for result in results)
    print(f"\n{len(results)} families: {len(tried)} compared, {unsteady} not deterministic, "
          f"{len(results) - len(tried) - unsteady} not tried")
    for column in columns:
        same = sum(result["levels"][column] == "=" for result in tried)
        apart = sum(result["levels"][column] == "-" for result in tried)
        more = f", {apart} not compared" if apart else ""
        print(f"{column}: {same} equal, {len(tried) - same - apart} different{more}")
    counts = collections.Counter()
    for result in tried:
        counts.update(result.get("gradients", {}))
    for verdict_of, count in counts.most_common():
        print(f"gradients of modules: {count} {verdict_of}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAME,...")
    parser.add_argument("--levels", default=",".join(LEVELS), metavar="NAME,...", help=f"of {', '.join(LEVELS)}")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--list", action="store_true", help="print the families, and those left out, with the reason")
    options = parser.parse_args()
    if options.list:
        print("\n".join([*BY_NAME, *(f"{name}  not tried: {why}" for name, why in UNTRIED.items())]))
        return 0
    levels = [level for level in options.levels.split(",") if level]
    names = options.only.split(",") if options.only else list(BY_NAME)
    for name, known in [(level, LEVELS) for level in levels] + [(name, BY_NAME) for name in names]:
        if name not in known:
            parser.error(f"unknown name: {name}")

    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", MSPROBE_LOG_LEVEL="3")
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    use_torchvision()
    columns = levels + ["gradients"] * options.gradients
    width = max(map(len, names))
    print(f"{'':{width}} parameters {' '.join(columns)}")
    results = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=CONTEXT) as pool:
        for result in pool.map(try_family, names, [levels] * len(names), [options.gradients] * len(names)):
            show(result, columns, width)
            results.append(result)
    show_totals(results, columns)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    return int(any(cell not in "=-" for result in results for cell in result["levels"].values()))


if __name__ == "__main__":
    sys.exit(main())
