# SPDX-License-Identifier: Apache-2.0
"""Records both implementations of a model, checks that they compute what they should, and finds where a port is wrong.

The truth is read off the recording: the entries whose stack goes through a line marked with the mistake's name.
"""

import functools
import json
import pathlib
import re

import torch

import recorders
import training
from ports.port import RIGHT
from recording import Recorder

# Relative: what rounding may change of a loss and of the norms of all gradients.
TOLERANCES = {"float32": 1e-5, "bfloat16": 1e-2}
# A mistake changes one of them by five times as much as the right port does, and by no less than this.
LEAST = {"float32": 1e-5, "bfloat16": 2e-3}

_HERE = pathlib.Path(__file__).resolve().parent
_MARK = re.compile(r"# fault(, once)?: ([\w, ]+)$")
_FRAME = re.compile(r"File diagnosis/(ports/\w+\.py), line (\d+),[^\n]*\n (.*)")


class PairRecorder(Recorder):
    def __init__(self, folder, ports, tasks, level="mix"):
        super().__init__(folder, ports, tasks)
        self.level = level

    def run_of(self, port, wrong=None):
        """The name of a run of the reference (without `wrong`) or the port; recorded unless it is there."""
        side = "reference" if wrong is None else "-".join(["port", *([wrong.name] if wrong.name else [])])
        name = "-".join([port.name, side, *([self.level] if self.level != "mix" else [])])
        for task in self.tasks:
            self.made(name, task, "avx512", lambda folder, task=task: [functools.partial(
                record, port, wrong, folder, task, self.level, self.folder / "runs" / name / "outcome.json")])
        return name

    def pair(self, port, wrong):
        """One case: a right port where `wrong` is RIGHT."""
        golden, right = self.run_of(port), self.run_of(port, RIGHT)
        off = self.differs(golden, right)
        if max(off) > TOLERANCES[port.dtype]:
            raise RuntimeError(f"{port.name}: the port differs from the reference by {off}")
        target, more = right, {}
        if wrong is not RIGHT:
            target = self.run_of(port, wrong)
            self.check_wrong(port, wrong, off, self.differs(golden, target))
            more = {"wrong": wrong.name,
                    "truth": {"entries": self.truth(port, wrong, target, right), "backward": wrong.backward}}
        ending = f"-{self.level}" if self.level != "mix" else ""
        self.write_case(f"{port.name}-{wrong.name or 'right'}{ending}", port, {"target": target, "golden": golden},
                        benign=wrong is RIGHT, level=self.level, **more)

    def differs(self, one, other):
        """Relative differences of the loss and of two norms of all gradients."""
        a, b = (json.loads((self.folder / "runs" / run / "outcome.json").read_text()) for run in (one, other))
        return [abs(x - y) / max(abs(x), 1e-30) for x, y in zip(a, b)]

    def check_wrong(self, port, wrong, off, change):
        least = [max(5 * x, LEAST[port.dtype]) for x in off]
        name = f"{port.name}-{wrong.name}"
        if wrong.backward and change[0] > TOLERANCES[port.dtype]:
            raise RuntimeError(f"{name}: the loss changes by {change[0]}")
        if not any(x > y for x, y in zip(change, least)):
            raise RuntimeError(f"{name}: changes {change}, which may be rounding: {off}")

    def truth(self, port, wrong, target, right):
        """The entries that the mistake makes wrong in the first layer that has it."""
        found, usual = self.through(target, wrong.name), self.through(right, wrong.name)
        names = set()
        for line, entries in found.items():
            if line in once_marked():
                names.update(entries)
                continue
            first, parts = wrong.layer or 0, wrong.layers or port.layers
            if line not in usual:  # right layers do not run it
                first, parts = 0, 1 if wrong.layer is not None else parts
            if len(entries) % parts:
                raise LookupError(f"{port.name}-{wrong.name}: {len(entries)} entries in {parts} layers, of {line}")
            each = len(entries) // parts
            names.update(entries[first * each:(first + 1) * each])
        if not names:
            raise LookupError(f"{port.name}-{wrong.name}: no entry goes through a line with this mark")
        return [name for name in self.order(target) if name in names]

    def through(self, run, name):
        """The forward entries made by each line marked with `name`, in order."""
        stacks = json.loads((self.dump(run) / "stack.json").read_text(encoding="utf-8"))
        lines = {}
        for entries, frames in stacks.values():
            for frame in frames:
                match = _FRAME.match(frame)
                line = match and (match[1], int(match[2]))
                if line and source(match[1])[line[1] - 1] != match[3]:
                    raise LookupError(f"{run}: the code has changed since; record it anew")
                if line and name in marks().get(line, ()):
                    lines.setdefault(line, set()).update(entries)
        order = [entry for entry in self.order(run) if ".forward" in entry]
        return {line: [entry for entry in order if entry in met] for line, met in lines.items()}

    def order(self, run):
        return list(json.loads((self.dump(run) / "dump.json").read_text(encoding="utf-8"))["data"])

    def dump(self, run):
        return self.folder / "runs" / run / self.tasks[-1] / "step0" / "rank0"


@functools.lru_cache
def source(name):
    """The lines of a file as stacks show them: without marks."""
    return [_MARK.sub("", line).strip() for line in (_HERE.parent / name).read_text(encoding="utf-8").splitlines()]


def _marked_lines():
    for path in _HERE.glob("*.py"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = _MARK.search(line)
            if match:
                yield (f"ports/{path.name}", number), match


@functools.lru_cache
def marks():
    """(file, line) -> names of the mistakes it is marked with."""
    return {line: re.split(r",\s*", match[2]) for line, match in _marked_lines()}


@functools.lru_cache
def once_marked():
    return {line for line, match in _marked_lines() if match[1]}


def record(make_port, wrong, folder, task, level, outcome):
    """Runs one implementation for one step. To be called once in a process."""
    torch.set_num_threads(1)
    port = make_port()
    model = port.pair(wrong)
    batch = port.batch(torch.Generator().manual_seed(port.seed))

    from msprobe.pytorch import PrecisionDebugger

    config = pathlib.Path(f"{folder}.json")
    config.write_text(json.dumps(training.settings_of(task, level, "FOCUS", folder)), encoding="utf-8")
    debugger = PrecisionDebugger(config_path=str(config))
    # At this level the recorder wants a module; a port that has none gives an empty one.
    seen = model if isinstance(model, torch.nn.Module) else torch.nn.Module()
    debugger.start(seen, **({"rank_id": 0} if recorders.TAKES_RANK else {}))
    with torch.set_grad_enabled(port.trains):
        loss = port.reference_loss(model, batch) if wrong is None else port.port_loss(model, batch)
    if port.trains:
        loss.backward()
    debugger.stop()
    debugger.step()
    config.unlink()
    gradients = [p.grad.double() for p in model.parameters() if p.grad is not None] if port.trains else []
    norms = [sum((g.abs() ** n).sum().item() for g in gradients) ** (1 / n) for n in (2, 4)] if gradients else []
    outcome.write_text(json.dumps([loss.item(), *norms]) + "\n", encoding="utf-8")
