# SPDX-License-Identifier: Apache-2.0
"""Makes the runs of cases and the description of each case."""

import contextlib
import functools
import json
import pathlib
import re
import shutil

import torch

with contextlib.suppress(ImportError):  # PyTorch 1 has none
    import torch._dynamo  # every optimizer would load it anew in every child

import recorders
import training
from expecting import expectation

TASKS = ("statistics", "tensor")


class Recorder:
    def __init__(self, folder, benches, tasks=TASKS):
        recorders.claim(folder)
        self.folder = pathlib.Path(folder)
        self.tasks = tasks
        self.benches = benches
        self.recorded = self.cases = 0
        self.failed = []

    def attempt(self, make, *arguments):
        """One case that cannot be made leaves the others alone."""
        try:
            make(*arguments)
            self.cases += 1
        except (RuntimeError, LookupError) as error:
            self.failed.append(str(error))

    def run(self, bench, seed, kernel, fault=None):
        """The name of a run; recorded unless it is there."""
        name = "-".join([bench.name, *([fault.name] if fault else []), str(seed), kernel])
        for task in self.tasks:
            self.made(name, task, kernel, lambda folder, task=task: [functools.partial(
                training.record, bench, seed, kernel, fault, folder, task, rank) for rank in range(bench.ranks)])
        return name

    def made(self, name, task, kernel, works):
        """Records one task of a run, unless it is there: `works` gives for a folder what each rank does."""
        place = self.folder / "runs" / name / task
        if place.exists():
            return
        unfinished = place.with_name(task + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        try:
            training.forked(training.KERNELS[kernel][0], works(unfinished))
        except RuntimeError as error:
            raise RuntimeError(f"{name}: {error}") from None
        for rank in unfinished.glob("step*/rank"):
            rank.rename(rank.with_name("rank0"))  # of a recorder that was not told the rank
        _shorten(unfinished)
        unfinished.rename(place)
        self.recorded += 1

    def write_case(self, name, bench, sides, **more):
        case = {"name": name, "set": bench.set_name, "model": bench.name, "dtype": bench.dtype,
                "held_out": bench.held_out, **more, "runs": {side: f"runs/{run}" for side, run in sides.items()}}
        place = self.folder / "cases" / f"{name}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(case, indent=1) + "\n", encoding="utf-8")

    def faulty(self, fault, number):
        bench = self.benches[fault.bench]
        self.case_of_fault(fault, bench.seeds[number % len(bench.seeds)], *turns(bench.kernels, number))

    def case_of_fault(self, fault, seed, golden, target, third):
        bench = self.benches[fault.bench]
        sides = {"target": self.run(bench, seed, target, fault), "golden": self.run(bench, seed, golden)}
        if third:
            sides["noise_floor"] = self.run(bench, seed, third)
        folders = {side: self.folder / "runs" / sides[side] / self.tasks[-1] for side in ("target", "golden")}
        self.write_case(f"{fault.bench}-{fault.name}", bench, sides, benign=False, fault=fault.kind,
                        size=fault.size or fault.source, seed=seed,
                        kernels=[kernel for kernel in (target, golden, third) if kernel],
                        expect=expectation(fault, folders, bench.recorded_steps, bench.ranks))

    def benign(self, bench, seed, golden, target, third):
        sides = {"target": self.run(bench, seed, target), "golden": self.run(bench, seed, golden)}
        if third not in (golden, target):
            sides["noise_floor"] = self.run(bench, seed, third)
        self.write_case(f"{bench.name}-benign-{seed}-{target}-{golden}", bench, sides, benign=True,
                        kernels=[target, golden, third], seed=seed)


def turns(kernels, number):
    """Golden, target and third kernel of a case: all ordered pairs take turns."""
    pairs = [(a, b) for a in kernels for b in kernels if a != b]
    golden, target = pairs[number % len(pairs)]
    rest = [kernel for kernel in kernels if kernel not in (golden, target)]
    return golden, target, rest[number % len(rest)]


def _shorten(folder):
    """Paths of this machine say nothing about a run."""
    here = str(pathlib.Path(__file__).resolve().parent)
    library = str(pathlib.Path(torch.__file__).resolve().parent.parent)
    for place in folder.glob("step*/rank*"):
        for name in ("stack.json", "dump.json", "construct.json"):
            path = place / name
            text = path.read_text(encoding="utf-8")
            text = text.replace(here, "diagnosis").replace(library, "site-packages")
            text = text.replace(str(place.resolve()), ".").replace(str(place), ".")
            path.write_text(_without_our_frames(text) if name == "stack.json" else text, encoding="utf-8")


_OF_OURS = ("File diagnosis/record,", "File diagnosis/recording.py,", "File diagnosis/freeze,", ", in _fork, ",
            ", in forked, ", ", in <listcomp>, \n children")


_MARK = re.compile(r"\s*# fault(, once)?: .*$")


def _without_our_frames(text):
    """Stacks that end where the training is called: how it was started differs from run to run. Marks of faults, which would
    show what is wrong in a port, are removed."""
    stacks = json.loads(text)
    for _, frames in stacks.values():
        frames[:] = [frame for frame in frames if not any(text in frame for text in _OF_OURS)]
        frames[:] = [_MARK.sub("", frame) for frame in frames]
    return json.dumps(stacks, indent=1)


def benign_pairs(bench):
    """Every kernel against the first one, and one pair without it."""
    kernels = bench.kernels
    pairs = [(kernels[0], kernel) for kernel in kernels[1:]] + [(kernels[1], kernels[2])]
    for seed in bench.seeds:
        for golden, target in pairs:
            rest = [kernel for kernel in kernels if kernel not in (golden, target)]
            yield seed, golden, target, rest[-1]
