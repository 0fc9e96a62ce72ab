#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of the commands that read packs, logs, checkpoints and gradients, over those of which nothing, or a
whole part, cannot be judged. None of them passes, and a line says what was not judged. Beside them stands what each command
can judge, which passes. gates.py has the commands that read dumps, gates_of_monitors.py `monitor`.

usage: gates_of_records.py MSPROBE
"""

import json
import math
import zipfile

import harness
from gate_checks import found, nothing, something, tests_of
from tensor_files import npy, save_lists


def pack(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def config_cases():
    def packs(bench, cmp=None):
        def write(scratch):
            pack(scratch / "a.zip", bench)
            pack(scratch / "b.zip", bench if cmp is None else cmp)
        return write

    def tensor(value):
        return json.dumps({"w": dict.fromkeys(("max", "min", "mean", "norm"), value)})

    weights, dataset = "weights/step0/rank0/w.json", "dataset/step0/rank0/dataset.json"
    static = "hyperparameters/hyperparameters_static.json"
    good = {"env": json.dumps({"HCCL_ALGO": "ring"}), "pip": "torch=2.1.0\n"}
    unjudged = {
        "empty packs": packs({}),
        "archives that are no packs": packs({"notes.txt": "x", "more/model.bin": "y"}),
        "a pack and an archive that is none": packs({}, {"notes.txt": "x"}),
        "no package": packs({"pip": ""}),
        "no hyper-parameter": packs({static: "{}"}),
        "no random call": packs({"random/rank0.json": "{}"}),
        "no weight": packs({weights: "{}"}),
        "weights of null statistics": packs({**good, weights: tensor(None)}),
        "weights that are NaN": packs({**good, weights: tensor(math.nan)}),
        "data of null statistics": packs({**good, dataset: tensor(None)}),
        "data that is NaN": packs({**good, dataset: tensor(math.nan)}),
    }
    judged = {
        "the same": packs(good),
        "the same weights": packs({**good, weights: tensor(1.5)}),
        "the same data": packs({**good, dataset: tensor(1.5)}),
        "no random call beside others": packs({**good, "random/rank0.json": "{}"}),
    }
    def apart(msprobe, scratch, words):
        found(msprobe, scratch, words)
        said = harness.run(msprobe, words, scratch).stderr
        harness.check("anything to compare" not in said, said)

    for level in ("error", "warning"):
        yield f"config_check -c, {level}: no section in common", packs({"env": good["env"]}, {"pip": good["pip"]}), \
            ["config_check", "-c", "a.zip", "b.zip", "-o", "out", "--fail-on", level], apart
        for kinds, check in ((unjudged, nothing), (judged, something)):
            for name, write in kinds.items():
                yield f"config_check -c, {level}: {name}", write, ["config_check", "-c", "a.zip", "b.zip", "-o", "out", "--fail-on", level], check

    def logs(text, expected="{}"):
        def write(scratch):
            for name in ("a.log", "b.log"):
                (scratch / name).write_text(text, encoding="utf-8")
            (scratch / "expected.json").write_text(expected, encoding="utf-8")
        return write

    verl = "{'actor_rollout_ref': {'b': True}}"
    slime = "------------------------ arguments ------------------------\n  %s ..... 1\n-------------------- end of arguments ---------------------\n"
    for option, files, nothing_there, write in (
        ("-vv", ["expected.json", "a.log"], logs(verl), logs(verl, '{"actor_rollout_ref": {"b": true}}')),
        ("-vc", ["a.log", "b.log"], logs("{'actor_rollout_ref': {'ray_address': 1}}"), logs(verl)),
        ("-sc", ["a.log", "b.log"], logs(slime % "profile_all"), logs(slime % "lr")),
    ):
        words = ["config_check", option, *files, "-o", "out", "--fail-on", "error"]
        yield f"config_check {option}: no parameter", nothing_there, words, nothing
        yield f"config_check {option}: the same", write, words, something


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
            ("no elements", sides({0: {0: {"w": []}}})),
            ("no elements in a rank", sides({0: {0: signs}, 1: {0: {"w": []}}})),
        ):
            yield f"grad_compare {level}: {name}", write, words, not_compared
        yield f"grad_compare {level}: the same", sides({0: {0: signs, 1: signs}, 1: {0: signs, 1: signs}}), words, something


def make_tests(msprobe):
    return tests_of(msprobe, [*config_cases(), *checkpoint_cases(), *gradient_cases()])


harness.main(make_tests)
