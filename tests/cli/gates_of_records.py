#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of the commands that read checkpoints and gradients, over those of which nothing, or a whole part,
cannot be judged. None of them passes, and a line says what was not judged. Beside them stands what each command can judge,
which passes. gates.py has the commands that read dumps, gates_of_configs.py and gates_of_monitors.py the others.

usage: gates_of_records.py MSPROBE
"""

import math

import harness
from gate_checks import nothing, something, tests_of
from tensor_files import npy, save_lists


def checkpoint_cases():
    def files(first, second=None, name_map=None):
        def write(scratch):
            save_lists(scratch / "a.safetensors", first)
            save_lists(scratch / "b.safetensors", first if second is None else second)
            if name_map is not None:
                (scratch / "map.yaml").write_text(name_map, encoding="utf-8")
        return write

    rule = "- to: w\n  from: {}\n"
    one = {"w": [1.0, 2.0]}
    def not_compared(*run):
        nothing(*run, told="^msprobe: error: .*(nothing was compared|not judged|it has no tensors)")

    for level in ("different", "missing", "unequal"):
        words = ["ckpt_compare", "a.safetensors", "b.safetensors", "-o", "out.json", "--fail-on", level]
        for name, write, more in (
            ("no parameters", files({}), []),
            ("no parameters in one", files(one, {}), []),
            ("no name in common", files(one, {"other": [1.0, 2.0]}), []),
            ("no element", files({"w": []}), []),
            ("no element in common", files({"w": [], "a": [1.0]}, {"w": [], "b": [1.0]}), []),
            ("a map that names nothing", files(one, None, rule.format("other")), ["--name-map", "map.yaml"]),
        ):
            yield f"ckpt_compare {level}: {name}", write, [*words, *more], not_compared
        nan = {**one, "n": [math.nan, math.nan]}
        yield f"ckpt_compare {level}: NaN throughout", files(nan), words, something if level == "unequal" else nothing
        yield f"ckpt_compare {level}: NaN beside a number", files({"w": [math.nan, 1.0]}), words, something
        yield f"ckpt_compare {level}: infinite throughout", files({**one, "mask": [-math.inf, -math.inf]}), words, something
        def folders(scratch):
            for side in "ab":
                (scratch / side).mkdir()
                save_lists(scratch / side / "model.safetensors", one)
                save_lists(scratch / side / "model.fp16.safetensors", {"w": [3.0, 4.0]})
        yield f"ckpt_compare {level}: weights beside others", folders, ["ckpt_compare", "a", "b", *words[3:]], nothing
        yield f"ckpt_compare {level}: the same", files(one), words, something
        yield f"ckpt_compare {level}: a parameter without elements", files({**one, "e": []}), words, something
        yield f"ckpt_compare {level}: a map", files({"v": [1.0]}, {"w": [1.0]}, rule.format("v")), [*words, "--name-map", "map.yaml"], something
    words = ["config_check", "-c", "a.safetensors", "b.safetensors", "-o", "out.json", "--fail-on", "error"]
    yield "config_check of checkpoints: no name in common", files(one, {"x": [1.0]}), words, not_compared
    yield "config_check of checkpoints: the same", files(one), words, something


def gradient_cases():
    def sides(first, second=None):
        """rank -> step -> parameter -> signs."""
        def write(scratch):
            for side, ranks in (("a", first), ("b", first if second is None else second)):
                (scratch / side).mkdir()
                for rank, steps in ranks.items():
                    folder = scratch / side / f"rank{rank}"
                    folder.mkdir()
                    for step, parameters in steps.items():
                        (folder / f"step{step}").mkdir()
                        rows = "param_name,max,min,norm,shape\r\n"
                        for name, values in parameters.items():
                            (folder / f"step{step}" / f"{name}.npy").write_bytes(npy("|b1", (len(values),), bytes(values)))
                            rows += f"{name},1.0,-1.0,1.0,[{len(values)}]\r\n"
                        (folder / f"grad_summary_{step}.csv").write_text(rows, encoding="utf-8")
        return write

    signs = {"w": [True, False, True]}
    def not_compared(*run):
        nothing(*run, told="^msprobe: (error: .|warning: not compared: .)")

    for level in ("suspect", "unequal"):
        words = ["grad_compare", "a", "b", "-o", "out", "--fail-on", level]
        for name, write in (
            ("no ranks", sides({})),
            ("no rank in common", sides({0: {0: signs}}, {1: {0: signs}})),
            ("a rank less", sides({0: {0: signs}, 1: {0: signs}}, {0: {0: signs}})),
            ("no steps", sides({0: {}})),
            ("no step in common", sides({0: {0: signs}}, {0: {1: signs}})),
            ("a step more", sides({0: {0: signs, 1: signs}}, {0: {0: signs}})),
            ("no parameter in common", sides({0: {0: signs}}, {0: {0: {"v": [True]}}})),
            ("no parameters", sides({0: {0: {}}})),
            ("no parameters in a rank", sides({0: {0: signs}, 1: {0: {}}})),
            ("a summary without signs", lambda scratch: [sides({0: {0: signs}})(scratch), *[
                (scratch / side / "rank0" / "grad_summary_1.csv").write_text("param_name,max,min,norm,shape\r\n") for side in "ab"]]),
            ("signs that no summary names", lambda scratch: [sides({0: {0: {**signs, "v": [True]}}})(scratch), *[
                (scratch / side / "rank0" / "grad_summary_0.csv").write_text("param_name,max,min,norm,shape\r\nw,1,-1,1,[3]\r\n") for side in "ab"]]),
            ("no elements", sides({0: {0: {"w": []}}})),
            ("no elements in a rank", sides({0: {0: signs}, 1: {0: {"w": []}}})),
        ):
            yield f"grad_compare {level}: {name}", write, words, not_compared
        yield f"grad_compare {level}: the same", sides({0: {0: signs, 1: signs}, 1: {0: signs, 1: signs}}), words, something


def make_tests(msprobe):
    return tests_of(msprobe, [*checkpoint_cases(), *gradient_cases()])


harness.main(make_tests)
