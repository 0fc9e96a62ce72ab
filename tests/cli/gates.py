#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of every command, over inputs of which nothing, or a whole part, cannot be judged: no rank, no
value, no name in common, NaN throughout, a selection that matches nothing. None of them passes, and a line says what was
not judged. Beside them stands what each command can judge, which passes.

usage: gates.py MSPROBE SAMPLES GOLDEN_FOLDER PYTHON_WITH_PYTORCH
"""

import copy
import itertools
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import zipfile
import zlib

import harness

STATISTICS = ("Max", "Min", "Mean", "Norm")
RANKS = (0, 1)
TOLD = "^msprobe: error: not judged: ."
FAILED = "^msprobe: error: ."


def nothing(msprobe, scratch, words, told=TOLD):
    """What could not be judged passes no gate, and is told."""
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check(result.returncode in (1, 2), said)
    harness.check(re.search(told, result.stderr, re.M), said)


def fails(*run):
    nothing(*run, told=FAILED)


def found(msprobe, scratch, words):
    """Something else is wrong, which goes ahead of what was not judged."""
    result = harness.run(msprobe, words, scratch)
    harness.check_equal(f"{words}: {result.stdout}{result.stderr}", result.returncode, 1)


def something(msprobe, scratch, words):
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check_equal(said, result.returncode, 0)
    harness.check("not judged" not in result.stderr, said)


# What is done to the data of one rank.


def each_tensor(data, change):
    """The data with the description of each tensor changed."""
    if isinstance(data, dict) and data.get("type") == "torch.Tensor":
        return change(dict(data))
    if isinstance(data, dict):
        return {key: each_tensor(value, change) for key, value in data.items()}
    if isinstance(data, list):
        return [each_tensor(value, change) for value in data]
    return data


def with_statistics(value):
    return lambda data: each_tensor(data, lambda tensor: {**tensor, **dict.fromkeys(STATISTICS, value)})


def without(*keys):
    return lambda data: each_tensor(data, lambda tensor: {key: each for key, each in tensor.items() if key not in keys})


def scaled(data):
    def change(tensor):
        return {**tensor, **{key: 3 * tensor[key] + 1 for key in STATISTICS if tensor.get(key) is not None}}
    return each_tensor(data, change)


def renamed(data):
    return {name.replace(".", ".other_", 1): value for name, value in data.items()}


def others(data):
    return renamed(scaled(data))


def empty(_data):
    return {}


def no_tensors(data):
    return each_tensor(data, lambda _tensor: None)


def checksums(data):
    def change(tensor):
        return {**tensor, "md5": f"{zlib.crc32(json.dumps(tensor).encode()):08x}"}
    return absent(each_tensor(data, change))


def no_checksums(data):
    return each_tensor(checksums(data), lambda tensor: {**tensor, "md5": None})


def modules(data):
    return {f"Module.part.{name.split('.')[1]}.Part.forward.0": value for name, value in data.items()}


def same(data):
    return data


def first_entry(change):
    """One call among others that has nothing to compare is nothing special."""
    def only_first(data):
        name = next(iter(data))
        return {**data, name: change({name: data[name]})[name]}
    return only_first


nulls, nans, absent = with_statistics(None), with_statistics(math.nan), without(*STATISTICS)


class Samples:
    """Dumps of the sample model, of two ranks."""

    def __init__(self, folder):
        self.ranks = {}
        for rank in RANKS:
            text = (pathlib.Path(folder) / f"golden/step0/rank{rank}/dump.json").read_text(encoding="utf-8")
            self.ranks[rank] = json.loads(text)

    def write(self, folder, changes=None, task="statistics", steps=(0,), ranks=RANKS):
        """`changes`: by rank, what is done to its data; a function for all."""
        for step, rank in itertools.product(steps, ranks):
            dump = copy.deepcopy(self.ranks[rank])
            data = without("data_name")(dump["data"])
            change = changes if callable(changes) else (changes or {}).get(rank)
            dump.update(task=task, dump_data_dir=None, data=change(data) if change else data)
            place = folder / f"step{step}" / f"rank{rank}"
            place.mkdir(parents=True)
            (place / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
            (place / "stack.json").write_text("{}", encoding="utf-8")
            construct = dict.fromkeys(dump["data"])
            (place / "construct.json").write_text(json.dumps(construct), encoding="utf-8")


def compare_cases(msprobe, samples, tensors):
    def pair(target=None, golden=None, of_target=None, of_golden=None):
        def write(scratch):
            samples.write(scratch / "t", target, **(of_target or {}))
            samples.write(scratch / "g", golden, **(of_golden or {}))
        return write

    def both(change, **more):
        return pair(change, change, more, more)

    def unread(*ranks):
        def write(scratch):
            for side in "tg":
                shutil.copytree(tensors / "golden", scratch / side)
            for rank in ranks:
                shutil.rmtree(scratch / f"t/step0/rank{rank}/dump_tensor_data")
                (scratch / f"t/step0/rank{rank}/dump_tensor_data").mkdir()
        return write

    unjudged = {
        "no entries": both(empty),
        "no entries in the target": pair(empty),
        "no entries in golden": pair(None, empty),
        "no entries in a rank": both({1: empty}),
        "no entries in a rank of the target": pair({1: empty}),
        "no entries in a rank of golden": pair(None, {1: empty}),
        "null statistics": both(nulls),
        "null statistics in the target": pair(nulls),
        "null statistics in a rank": both({1: nulls}),
        "null statistics in a rank of golden": pair(None, {1: nulls}),
        "no statistics": both(absent),
        "no statistics in a rank": both({1: absent}),
        "no statistics in a rank of the target": pair({1: absent}),
        "NaN throughout": both(nans),
        "NaN throughout in a rank": both({1: nans}),
        "no tensors": both(no_tensors),
        "no tensors in a rank": both({1: no_tensors}),
        "no name in common": pair(renamed),
        "no name in common in a rank": pair({1: renamed}),
        "no name and no value in common": pair(others),
        "3x + 1 throughout": pair(scaled),
        "3x + 1 throughout in golden": pair(None, scaled),
        "3x + 1 throughout in a rank": pair({1: scaled}),
        "a rank less in the target": pair(of_target={"ranks": (0,)}),
        "a rank less in golden": pair(of_golden={"ranks": (0,)}),
        "a step more in the target": pair(of_target={"steps": (0, 1)}, of_golden={"steps": (0,)}),
        "a step more in golden": pair(of_golden={"steps": (0, 1)}),
        "no checksums": both(no_checksums),
        "no checksums in a rank": pair({0: checksums, 1: no_checksums}, {0: checksums, 1: no_checksums}),
        "no tensor files": unread(0, 1),
        "no tensor files in a rank": unread(1),
    }
    failed = {
        "checksums against statistics in a rank": pair({1: checksums}),
        "structure against statistics": pair(absent, of_target={"task": "structure"}),
    }
    judged = {
        "the same": pair(),
        "the same, two steps": both(None, steps=(0, 1)),
        "the same checksums": both(checksums),
        "the same files": unread(),
        "an entry without tensors": both(first_entry(no_tensors)),
        "an entry of null statistics": both(first_entry(nulls)),
        "an entry that is NaN": both(first_entry(nans)),
    }
    two = ["compare", "-tp", "t", "-gp", "g", "-o", "out"]
    for level in ("culprit", "error", "warning", "unmatched"):
        for name, write in unjudged.items():
            check = found if level == "culprit" and name.startswith("3x + 1") else nothing
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], check
        for name, write in failed.items():
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], fails
        for name, write in judged.items():
            yield f"compare {level}: {name}", write, [*two, "--fail-on", level], something
    # The Python tool's verdicts, and -da, which has a search of its own.
    for options, kinds in (
        (["--python-rules", "--fail-on", "error"], ("no entries in a rank", "null statistics in a rank", "NaN throughout in a rank",
                                                    "3x + 1 throughout", "a rank less in golden", "a step more in golden")),
        (["-da", "--fail-on", "error"], ("no entries", "no entries in a rank", "null statistics", "null statistics in a rank",
                                         "no statistics in a rank", "NaN throughout", "no tensors in a rank",
                                         "a rank less in golden", "a step more in the target", "no checksums in a rank")),
    ):
        for name in kinds:
            yield f"compare {' '.join(options)}: {name}", unjudged[name], [*two, *options], nothing
        for name in ("the same", "an entry of null statistics", "the same checksums"):
            yield f"compare {' '.join(options)}: {name}", judged[name], [*two, *options], something
    for level in ("culprit", "error"):
        against = ["compare", "--against", "g", "t", "-o", "out", "--fail-on", level]
        for name in ("no entries in a rank", "null statistics", "no name in common", "a rank less in the target",
                     "NaN throughout in a rank"):
            yield f"compare --against, {level}: {name}", unjudged[name], against, nothing
        yield f"compare --against, {level}: the same", judged["the same"], against, something

    # A mapping that names nothing of the dumps.
    maps = {
        "-dm": ("Functional.{0}.0.forward.input.0: Functional.{0}.0.forward.input.0\n", "embedding"),
        "-cm": ("{0}: {0}\n", "part"),
        "-am": ("- ms_api: Functional.{0}\n  pt_api: Functional.{0}\n  ms_args: [0]\n  pt_args: [0]\n", "embedding"),
        "-lm": ("TopLayer:\n  {0}: {0}\n", "part"),
    }
    for option, (text, known) in maps.items():
        for what, check in (("nowhere", nothing), (known, something)):
            def write(scratch, text=text.format(what), change=modules if option in ("-cm", "-lm") else same):
                both(change)(scratch)
                (scratch / "map.yaml").write_text(text, encoding="utf-8")
            yield f"compare {option}: names {what}", write, [*two, option, "map.yaml", "--fail-on", "culprit"], check


def npy(values, kind="<f8"):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len(values)},), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    packed = bytes(values) if kind == "|b1" else struct.pack(f"<{len(values)}d", *values)
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + packed


def other_layout_cases():
    """Dumps without a dump.json: arrays saved by name, statistics of ATB."""
    def arrays(target, golden=None):
        def write(scratch):
            for side, saved in (("t", target), ("g", target if golden is None else golden)):
                for place, values in saved.items():
                    path = scratch / side / "data" / "tag" / place
                    path.mkdir(parents=True)
                    (path / "x.npy").write_bytes(npy(values))
        return write

    def statistics(value, name="Linear"):
        row = f"0_11,0,Model/{{}},X,0_3,input,0,float,nd,2,{','.join([value] * 4)},N/A\n"
        def write(scratch):
            for side, operation in (("t", "Linear"), ("g", name)):
                (scratch / side).mkdir()
                (scratch / side / "statistic.csv").write_text("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o\n" + row.format(operation))
        return write

    one, nan = [1.0, 2.0], [math.nan, math.nan]
    two = ["compare", "-tp", "t", "-gp", "g", "-o", "out", "--fail-on"]
    for level in ("error", "warning", "unmatched"):
        for name, write, check in (
            ("NaN throughout", arrays({"step0/rank0": nan}), nothing),
            ("a step more", arrays({"step0/rank0": one, "step1/rank0": one}, {"step0/rank0": one}), nothing),
            ("no element", arrays({"step0/rank0": []}), nothing),
            ("the same", arrays({"step0/rank0": one, "step0/rank1": [1.0, math.nan]}), something),
        ):
            yield f"compare of saved arrays, {level}: {name}", write, [*two, level], check
        for name, write, check in (
            ("no statistics", statistics("N/A"), nothing),
            ("no name in common", statistics("1", "Other"), fails),
            ("the same", statistics("1"), something),
        ):
            yield f"compare -m atb, {level}: {name}", write, [*two, level, "-m", "atb"], check


def anomaly_cases(msprobe, samples):
    def dump(change=None, task="statistics", **more):
        return lambda scratch: samples.write(scratch / "dump", change, task=task, **more)

    unjudged = {
        "no entries": dump(empty),
        "no entries in a rank": dump({1: empty}),
        "null statistics": dump(nulls),
        "null statistics in a rank": dump({1: nulls}),
        "no statistics in a rank": dump({0: absent}),
        "no tensors": dump(no_tensors),
        "no tensors in a rank": dump({1: no_tensors}),
        "checksums": dump(checksums),
        "task structure": dump(absent, task="structure"),
        "task nan_check without its word": dump(absent, task="nan_check"),
        "no entries in any step": dump(empty, steps=(0, 1)),
    }
    judged = {"clean": dump(), "an entry without statistics": dump(first_entry(absent)), "two steps": dump(steps=(0, 1))}
    for options in ([], ["--all"], ["--levels"], ["--statistics"], ["--python-rules"]):
        commands = ("nan_analyze", "overflow_check") if not options else ("nan_analyze",)
        for command in commands:
            for kinds, check in ((unjudged, nothing), (judged, something)):
                for name, write in kinds.items():
                    place = "dump/step0" if options == ["--python-rules"] or len(name) % 2 else "dump"
                    words = [command, "-i", place, "-o", "out", "--fail-on", "anomaly", *options]
                    yield f"{' '.join([command, *options])}: {name}", write, words, check


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
    for level in ("error", "warning"):
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


def safetensors(path, tensors):
    header, data = {}, b""
    for name, values in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def checkpoint_cases():
    def files(first, second=None, name_map=None):
        def write(scratch):
            safetensors(scratch / "a.safetensors", first)
            safetensors(scratch / "b.safetensors", first if second is None else second)
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
                            (folder / f"step{step}" / f"{name}.npy").write_bytes(npy(values, "|b1"))
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


def monitor_cases():
    def run(folder, value=lambda step, rank: 1 + 0.1 * (step % 3), steps=range(8), ranks=(0,), statistics=("norm", "max", "nans")):
        for rank in ranks:
            place = folder / f"Jan01_00-00-00-rank{rank}-00000000"
            place.mkdir(parents=True)
            rows = [f"vpp_stage,name,step,micro_step,{','.join(statistics)},shape,dtype"]
            for step in steps:
                one = value(step, rank)
                spelt = [str(int(math.isnan(one)) * 16) if each == "nans" else str(one) for each in statistics]
                rows.append(f'0,layer.output,{step},0,{",".join(spelt)},"[4, 4]",torch.float32')
            (place / "actv_0-99.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def nan(_step, _rank):
        return math.nan

    def nan_in_rank(step, rank):
        return math.nan if rank == 1 else 1 + 0.1 * (step % 3)

    def alerts(folder, steps=(3,)):
        place = folder / "anomaly_detected" / "rank0"
        place.mkdir(parents=True)
        found = {}
        for step in steps:
            tag = "0:layer.output:0/rank0/actv"
            found[f"{tag}_step_{step}_call_0"] = {
                "rank": 0, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": 0, "call_id": 0, "tag_name": tag,
                "message": f"Rule AnomalyTurbulence reports anomaly signal in ('{tag}', 'norm') at step {step}, current value 9, history mean 1.",
                "group_mates": [0]}
        (place / "anomaly.json").write_text(json.dumps(found), encoding="utf-8")

    def both(**more):
        return lambda scratch: [run(scratch / side, **more) for side in "ab"]

    def single(**more):
        return lambda scratch: run(scratch / "a", **more)

    for level in ("different", "passing", "parted"):
        words = ["monitor", "compare", "a", "b", "--fail-on", level]
        for name, write, more in (
            ("NaN throughout", both(value=nan), []),
            ("NaN throughout in a rank", both(value=nan_in_rank, ranks=RANKS), []),
            ("infinite throughout", both(value=lambda step, rank: math.inf), []),
            ("no steps", both(steps=()), []),
            ("a statistic that is not there", both(), ["--statistics", "median"]),
        ):
            yield f"monitor compare {level}: {name}", write, [*words, *more], fails
        yield f"monitor compare {level}: the same", both(ranks=RANKS), words, something
        yield f"monitor compare {level}: NaN at a step", both(value=lambda step, rank: math.nan if step == 5 else 1), words, something

    words = ["monitor", "report", "a", "-o", "page.html", "--fail-on", "trouble"]
    for name, write in (("NaN throughout", single(value=nan)), ("NaN throughout in a rank", single(value=nan_in_rank, ranks=RANKS)),
                        ("no steps", single(steps=()))):
        yield f"monitor report: {name}", write, words, fails
    yield "monitor report: NaN throughout in both", both(value=nan), [*words[:3], "b", *words[3:]], nothing
    yield "monitor report: healthy", single(ranks=RANKS), words, something
    yield "monitor report: the same twice", both(), [*words[:3], "b", *words[3:]], something

    for rule in ("AnomalyTurbulence:0.5", "AnomalyNan"):
        words = ["monitor", "alerts", "-d", "a", "--rule", rule, "--fail-on", "alert"]
        kinds = [("no steps", single(steps=())), ("no steps in a rank", lambda scratch: [run(scratch / "a"), run(scratch / "a", steps=(), ranks=(1,))])]
        if rule != "AnomalyNan":
            kinds += [("NaN throughout", single(value=nan)), ("NaN throughout in a rank", single(value=nan_in_rank, ranks=RANKS)),
                      ("one step", single(steps=(0,))), ("no norm and no mean", single(statistics=("max", "nans")))]
        for name, write in kinds:
            yield f"monitor alerts {rule}: {name}", write, words, fails
        yield f"monitor alerts {rule}: healthy", single(ranks=RANKS), words, something

    def monitored(steps=(3,), series=True):
        def write(scratch):
            alerts(scratch / "a", steps)
            if series:
                run(scratch / "a")
        return write

    words = ["monitor", "analyze", "-d", "a", "-o", "out", "--fail-on", "alert"]
    for name, write, asked in (
        ("a step behind the last", monitored(series=False), "[40]"), ("steps behind the last", monitored(series=False), "200,201"),
        ("a step nobody monitored", monitored(), "[140]"), ("no alerts, no series", monitored((), series=False), "[3]"),
        ("no alerts, a step nobody monitored", monitored(()), "[140]"), ("an alert-free step and one nobody monitored", monitored(), "[4, 140]"),
    ):
        yield f"monitor analyze -s: {name}", write, [*words, "-s", asked], nothing
    yield "monitor analyze: no alerts", monitored((), series=False), words, something
    yield "monitor analyze -s: a step without alerts", monitored(), [*words, "-s", "[4]"], something
    yield "monitor analyze -s: between alerts", monitored((3, 9), series=False), [*words, "-s", "[5]"], something
    yield "monitor analyze -s: no alerts, but series", monitored(()), [*words, "-s", "[5]"], something


def precheck_cases(samples, golden, python):
    def dump(change=None, **more):
        return lambda scratch: samples.write(scratch / "dump", change, **more)

    def tensors(scratch):
        shutil.copytree(golden / "prechecks/acc_check/dump_tensor", scratch / "dump/step0/rank0")

    acc = ["acc_check", "-api_info", "dump/step0/rank0/dump.json", "-o", "out", "--recorded", "-n", "1", "--python", python]
    for level in ("error", "warning", "skip"):
        for name, change in (("no entries", empty), ("no tensors", no_tensors), ("null statistics", nulls), ("no name of an operation", renamed)):
            if change is empty or python != "-":
                yield f"acc_check {level}: {name}", dump(change), [*acc, "--fail-on", level], nothing
    if python != "-":
        def one(scratch):
            tensors(scratch)
            path = scratch / "dump/step0/rank0/dump.json"
            whole = json.loads(path.read_text(encoding="utf-8"))
            whole["data"] = {name: value for name, value in whole["data"].items() if name.startswith("Functional.linear.0.forward")}
            path.write_text(json.dumps(whole), encoding="utf-8")
        yield "acc_check error: a call that passes", one, [*acc, "--fail-on", "error"], something

    lines = (golden / "prechecks/precision_compare/in/main_npu.csv").read_bytes().splitlines(keepends=True)
    good = next(line for line in lines if line.startswith(b"Torch.tanh.0."))
    other = next(line for line in lines if line.startswith(b"Torch.tanh.1."))
    blank = next(line for line in lines if line.startswith(b"Torch.tanh.57."))

    def details(npu, gpu):
        def write(scratch):
            (scratch / "npu.csv").write_bytes(b"".join([lines[0], *npu]))
            (scratch / "gpu.csv").write_bytes(b"".join([lines[0], *gpu]))
        return write

    for level in ("error", "skip"):
        words = ["api_precision_compare", "-npu", "npu.csv", "-gpu", "gpu.csv", "-o", "out", "--fail-on", level]
        for name, npu, gpu in (("no rows", [], []), ("no rows of the judged device", [], [good]), ("no rows of the other device", [good], []),
                               ("no name in common", [good], [other]), ("rows without figures", [blank], [blank])):
            yield f"api_precision_compare {level}: {name}", details(npu, gpu), words, nothing
        yield f"api_precision_compare {level}: a row that passes", details([good], [good]), words, something


def has_pytorch(python):
    return python != "-" and subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def make_tests(msprobe, samples_folder, golden_folder, python):
    python = python if has_pytorch(python) else "-"
    samples = Samples(samples_folder)
    golden = harness.data(golden_folder, "prechecks")

    def test(write, words, check):
        def body(scratch):
            write(scratch)
            check(msprobe, scratch, words)
        return body

    cases = [
        *compare_cases(msprobe, samples, pathlib.Path(samples_folder)),
        *other_layout_cases(),
        *anomaly_cases(msprobe, samples),
        *config_cases(),
        *checkpoint_cases(),
        *gradient_cases(),
        *monitor_cases(),
        *precheck_cases(samples, golden, python),
    ]
    harness.check(len({name for name, *_ in cases}) == len(cases), "two cases have one name")
    return [(name, test(write, words, check)) for name, write, words, check in cases]


if __name__ == "__main__":
    harness.main(make_tests)
