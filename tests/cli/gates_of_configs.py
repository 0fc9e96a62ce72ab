#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of `config_check`, over packs and logs of which nothing, or a part, can be compared: sections that are
empty, null, NaN, nested and empty, in another encoding. None of them passes, and one line says what was not compared. Beside
them stands what can be compared, which passes.

usage: gates_of_configs.py MSPROBE
"""

import itertools
import json
import math
import zipfile

import harness
from gate_checks import found, never_passes, one_line, something, tests_of

WEIGHTS, DATASET, RANDOM = "weights/step0/rank0/w.json", "dataset/step0/rank0/dataset.json", "random/rank0.json"
STATIC, DYNAMIC = "hyperparameters/hyperparameters_static.json", "hyperparameters/hyperparameters_dynamic.json"
GOOD = {"env": json.dumps({"HCCL_ALGO": "ring"}), "pip": "torch=2.1.0\n"}
STATISTICS = ("max", "min", "mean", "norm")


def pack(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)


def packs(bench, cmp=None):
    def write(scratch):
        pack(scratch / "a.zip", bench)
        pack(scratch / "b.zip", bench if cmp is None else cmp)
    return write


def records():
    """Values without content in place of the four statistics of a tensor."""
    for name, value in (("null", None), ("NaN", math.nan), ("infinite", math.inf), ("a word", "x"), ("an empty text", ""),
                        ("an object", {}), ("a list", [])):
        record = dict.fromkeys(STATISTICS, value)
        yield f"statistics that are {name}", record
        yield f"statistics that are {name}, beside a shape", {**record, "shape": [2, 3]}
    yield "null", None
    yield "an empty object", {}
    yield "nested empty objects", {"x": {"y": {}}}
    yield "nested nulls", {"x": {"y": None}}
    yield "NaN", math.nan


def trees(record):
    """A record in the trees that a model was given, alone and deep."""
    yield "", {"args": {"0": record}, "kwargs": {}}
    yield ", deep", {"args": {"0": {"1": {"x": record}}}, "kwargs": {}}
    yield ", at the root", {"w": record}


def empty_members():
    """Members of a pack that hold nothing to compare."""
    for name, record in records():
        yield f"weights: {name}", {WEIGHTS: json.dumps({"w": record})}
        yield f"weights: {name}, beside others", {WEIGHTS: json.dumps({"v": dict.fromkeys(STATISTICS, 1.5), "w": record})}
        yield f"weights: {name}, in a second rank", {
            WEIGHTS: json.dumps({"v": dict.fromkeys(STATISTICS, 1.5)}), "weights/step0/rank1/w.json": json.dumps({"w": record})}
        for where, tree in trees(record):
            yield f"dataset: {name}{where}", {DATASET: json.dumps(tree)}
        if "empty object" not in name:  # which is an argument as well as others
            yield f"dataset: {name}, beside others", {DATASET: json.dumps({"args": {"0": dict.fromkeys(STATISTICS, 1.5), "1": record}})}
    for section, member in (("weights", WEIGHTS), ("dataset", DATASET)):
        yield f"{section}: an empty file of JSON", {member: "{}"}
    yield "dataset: empty arguments", {DATASET: json.dumps({"args": {}, "kwargs": {}})}
    yield "packages: none", {"pip": ""}
    yield "packages: blank lines", {"pip": "\n \n"}
    yield "packages: no versions", {"pip": "torch\nnumpy\n"}
    yield "variables: null", {"env": json.dumps({"HCCL_ALGO": None})}


def broken_members():
    """Members that cannot be read."""
    for section, member in (("variables", "env"), ("weights", WEIGHTS), ("dataset", DATASET), ("random", RANDOM),
                            ("hyper-parameters", STATIC), ("recorded hyper-parameters", DYNAMIC)):
        for name, text in (("an empty file", ""), ("a list", "[]"), ("null", "null"), ("a number", "1"), ("cut off", '{"a": {'),
                           ("no JSON", "a: 1"), ("UTF-16", '{"a": 1}'.encode("utf-16")), ("not UTF-8", b'{"a": "\xff"}')):
            yield f"{section}, the file is {name}", {member: text}
    yield "packages, the file is UTF-16", {"pip": GOOD["pip"].encode("utf-16")}


def pack_cases():
    def command(level):
        return ["config_check", "-c", "a.zip", "b.zip", "-o", "out", "--fail-on", level]

    def apart(msprobe, scratch, words):
        found(msprobe, scratch, words)
        said = harness.run(msprobe, words, scratch).stderr
        harness.check("anything to compare" not in said, said)

    record = dict.fromkeys(STATISTICS, 1.5)
    judged = {
        "packages and variables": GOOD,
        "weights": {**GOOD, WEIGHTS: json.dumps({"w": record})},
        "data": {**GOOD, DATASET: json.dumps({"args": {"0": record, "1": "", "2": ""}, "kwargs": {}})},
        "an argument that is empty": {**GOOD, DATASET: json.dumps({"args": {"0": record, "1": {}, "2": {"x": {}}}})},
        "data with a shape": {**GOOD, DATASET: json.dumps({"args": {"0": {**record, "shape": [2]}}})},
        "a statistic that is NaN": {**GOOD, WEIGHTS: json.dumps({"w": {**record, "mean": math.nan}})},
        "no random call beside others": {**GOOD, RANDOM: "{}"},
        "hyper-parameters, of which one is null": {**GOOD, STATIC: json.dumps({"lr": 1e-3, "load": None})},
        "hyper-parameters, of which one is NaN": {**GOOD, STATIC: json.dumps({"lr": 1e-3, "clip": math.nan})},
        "no variable that counts": {**GOOD, "env": "{}"},
    }
    nothing_there = {"empty packs": {}, "archives that are no packs": {"notes.txt": "x", "more/model.bin": "y"}, "no hyper-parameter": {STATIC: "{}"},
                     "no random call": {RANDOM: "{}"}, "no variable": {"env": "{}"}}
    for level in ("error", "warning"):
        words = command(level)
        yield f"-c, {level}: no section in common", packs({"env": GOOD["env"]}, {"pip": GOOD["pip"]}), words, apart
        for name, members in nothing_there.items():
            yield f"-c, {level}: {name}", packs(members), words, one_line
        for (one, first), (other, second) in itertools.permutations({"packs": GOOD, "nothing": {}, "no packs": {"notes.txt": "x"}}.items(), 2):
            yield f"-c, {level}: {one} against {other}", packs(first, second), words, one_line
        for name, members in empty_members():
            yield f"-c, {level}: {name}", packs({**GOOD, **members}), words, one_line
            if level == "error":
                yield f"-c, {level}: nothing but {name}", packs(members), words, one_line
        for name, members in broken_members():
            yield f"-c, {level}: {name}", packs({**GOOD, **members}), words, never_passes
            if level == "error":
                yield f"-c, {level}: {name}, in one", packs(GOOD | members, GOOD), words, never_passes
        for name, members in judged.items():
            yield f"-c, {level}: {name}", packs(members), words, something
        for where, tree in trees({**record, "shape": [2]}):
            other = json.loads(json.dumps(tree).replace("1.5", "2.5"))
            yield f"-c, {level}: other data{where}", packs({**GOOD, DATASET: json.dumps(tree)}, {**GOOD, DATASET: json.dumps(other)}), words, found
        for value in (None, math.nan, {}, 2):
            yield f"-c, {level}: {value} in place of 1", packs({**GOOD, DATASET: '{"args": {"0": 1}}'},
                                                               {**GOOD, DATASET: json.dumps({"args": {"0": value}})}), words, found


def nothing_compared_cases():
    def refused(msprobe, scratch, words):
        result = harness.run(msprobe, words, scratch)
        harness.check_equal(result.stderr, result.returncode, 2)

    yield "-d", lambda scratch: None, ["config_check", "-d", "-o", "pack.zip", "--fail-on", "error"], refused


def log_cases():
    def logs(text, expected="{}"):
        def write(scratch):
            for name in ("a.log", "b.log"):
                (scratch / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            (scratch / "expected.json").write_text(expected, encoding="utf-8")
        return write

    verl = "{'actor_rollout_ref': {'b': True}}"
    slime = "------------------------ arguments ------------------------\n%s-------------------- end of arguments ---------------------\n"
    line = "  %s ..... %s\n"
    kinds = {
        "-vv": (["expected.json", "a.log"], {
            "nothing expected": logs(verl), "an empty section expected": logs("{'actor_rollout_ref': {}}", '{"actor_rollout_ref": {}}')},
            {"the same": logs(verl, '{"actor_rollout_ref": {"b": true}}')}),
        "-vc": (["a.log", "b.log"], {
            "no parameter": logs("{'actor_rollout_ref': {'ray_address': 1}}"), "an empty section": logs("{'actor_rollout_ref': {}}"),
            "nested empty sections": logs("{'actor_rollout_ref': {'a': {'b': {}}, 'c': {}}}")},
            {"the same": logs(verl), "nan": logs("{'actor_rollout_ref': {'b': nan, 'c': [nan, 1.0]}}"),
             "None": logs("{'actor_rollout_ref': {'b': None}}")}),
        "-sc": (["a.log", "b.log"], {"no parameter": logs(slime % (line % ("profile_all", 1)))},
                {"the same": logs(slime % (line % ("lr", 1))), "nan": logs(slime % (line % ("lr", "nan")))}),
    }
    broken = {"an empty log": b"", "no configuration": b"epoch 1\n", "UTF-16": verl.encode("utf-16"), "cut off": b"{'actor_rollout_ref': {'b': ",
              "a block without arguments": (slime % "").encode(), "a block cut off": (slime % "")[:70].encode()}
    for option, (files, unjudged, judged) in kinds.items():
        words = ["config_check", option, *files, "-o", "out", "--fail-on", "error"]
        for name, write in unjudged.items():
            yield f"{option}: {name}", write, words, one_line
        for name, text in broken.items():
            yield f"{option}: {name}", logs(text), words, never_passes
        for name, write in judged.items():
            yield f"{option}: {name}", write, words, something


def make_tests(msprobe):
    return tests_of(msprobe, [*pack_cases(), *log_cases(), *nothing_compared_cases()])


harness.main(make_tests)
