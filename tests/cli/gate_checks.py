# SPDX-License-Identifier: Apache-2.0
"""Code that the tests of gates (--fail-on) share: the messages of a gate, and dumps of which a part cannot be judged."""

import copy
import itertools
import json
import math
import pathlib
import re
import zlib

import harness

STATISTICS = ("Max", "Min", "Mean", "Norm")
RANKS = (0, 1)
TOLD = "^msprobe: error: not judged: ."
FAILED = "^msprobe: error: ."


def nothing(msprobe, scratch, words, told=TOLD, statuses=(2,)):
    """An input that could not be judged passes no gate, and a message says so."""
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check(result.returncode in statuses, said)
    harness.check(re.search(told, result.stderr, re.M), said)
    harness.check("--help" not in result.stderr, said)  # no error of the command line


def nothing_or_found(msprobe, scratch, words):
    """The level reports some of what was not compared as a finding: what one side alone has, or what was skipped."""
    if harness.run(msprobe, words, scratch).returncode != 1:
        nothing(msprobe, scratch, words)


def never_passes(msprobe, scratch, words, statuses=(1, 2), told=FAILED, never_said="(?!)"):
    """Status 2 with one line that says why, or 1 with a finding."""
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check(result.returncode in statuses, said)
    harness.check(result.returncode == 1 or re.search(told, result.stderr, re.M), said)
    harness.check(result.stderr.count("not judged:") <= 1 and "--help" not in result.stderr, said)
    harness.check(not re.search(never_said, result.stdout + result.stderr, re.M), said)


def one_line(*run, **more):
    """One line says what could not be judged."""
    never_passes(*run, statuses=(2,), told=TOLD, **more)


def fails(*run):
    nothing(*run, told=FAILED)


def found(msprobe, scratch, words):
    """Something else is wrong, which goes ahead of what was not judged."""
    harness.run(msprobe, words, scratch, status=1)


def something(msprobe, scratch, words):
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check_equal(said, result.returncode, 0)
    harness.check("not judged" not in result.stderr, said)


# Changes to the data of one rank.


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


def of_mindspore(data):
    def renamed_types(value):
        if isinstance(value, dict):
            value = {key: renamed_types(each) for key, each in value.items()}
            return {**value, "type": "mindspore.Tensor"} if value.get("type") == "torch.Tensor" else value
        return [renamed_types(each) for each in value] if isinstance(value, list) else value
    return renamed_types(data)


def first_entry(change):
    """One call among others that has nothing to compare is nothing special."""
    def only_first(data):
        name = next(iter(data))
        return {**data, name: change({name: data[name]})[name]}
    return only_first


def outputs(change):
    """The change of what entries give."""
    def only_outputs(data):
        return {name: {**entry, "output": change(entry["output"])} for name, entry in data.items()}
    return only_outputs


nulls, nans, absent = with_statistics(None), with_statistics(math.nan), without(*STATISTICS)
words, blanks, infinities = with_statistics("x"), with_statistics(""), with_statistics(math.inf)


def hollow(data):
    return each_tensor(nulls(data), lambda tensor: {**tensor, "shape": [0]})


def with_checksum(text):
    return lambda data: each_tensor(checksums(data), lambda tensor: {**tensor, "md5": text})


class Samples:
    """Dumps of the sample model, of two ranks."""

    def __init__(self, folder):
        self.ranks = {}
        for rank in RANKS:
            text = (pathlib.Path(folder) / f"golden/step0/rank{rank}/dump.json").read_text(encoding="utf-8")
            self.ranks[rank] = json.loads(text)

    def write(self, folder, changes=None, task="statistics", steps=(0,), ranks=RANKS, header=None):
        """`changes`: by rank, what is done to its data; a function for all. `header`: members beside the data."""
        for step, rank in itertools.product(steps, ranks):
            dump = copy.deepcopy(self.ranks[rank])
            data = without("data_name")(dump["data"])
            change = changes if callable(changes) else (changes or {}).get(rank)
            dump.update(task=task, dump_data_dir=None, data=change(data) if change else data, **(header or {}))
            place = folder / f"step{step}" / f"rank{rank}"
            place.mkdir(parents=True)
            (place / "dump.json").write_text(json.dumps(dump), encoding="utf-8")
            (place / "stack.json").write_text("{}", encoding="utf-8")
            construct = dict.fromkeys(dump["data"])
            (place / "construct.json").write_text(json.dumps(construct), encoding="utf-8")


# The recorders: the Python tool for PyTorch, this collector, and MindSpore.
RECORDERS = {
    "": ({}, same),
    "our ": ({"recorder": "msprobe 1.0", "format": 1}, same),
    "MindSpore's ": ({"framework": "mindspore"}, of_mindspore),
}



def unjudged_pairs(samples, recorder=""):
    """Pairs of dumps of which nothing, or a part, cannot be compared; by what is wrong with them."""
    header, convert = RECORDERS[recorder]

    def converted(change):
        if isinstance(change, dict):
            return {rank: (lambda data, each=change.get(rank, same): convert(each(data))) for rank in RANKS}
        return lambda data: convert((change or same)(data))

    def pair(target=None, golden=None, of_target=None, of_golden=None):
        def write(scratch):
            samples.write(scratch / "t", converted(target), header=header, **(of_target or {}))
            samples.write(scratch / "g", converted(golden), header=header, **(of_golden or {}))
        return write

    def both(change, **more):
        return pair(change, change, more, more)

    return pair, both, {
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
        "infinite throughout": both(infinities),
        "no statistics of outputs in the target": pair(outputs(nulls)),
        "words as statistics": both(words),
        "words as statistics in a rank": both({1: words}),
        "empty texts as statistics": both(blanks),
        "no elements": both(hollow),
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
        "empty checksums": both(with_checksum("")),
        "empty checksums in the target": pair(with_checksum(""), checksums),
        "checksums that are not hexadecimal": both(with_checksum("nan")),
        "checksums of two digits": both(with_checksum("ab")),
        "checksums of two digits in the target": pair(with_checksum("ab"), checksums),
        "numbers as checksums": both(with_checksum(5)),
        "the checksum of no element": both(with_checksum("00000000")),
        "the checksum of no element in golden": pair(checksums, with_checksum("00000000")),
        "an entry of null statistics": both(first_entry(nulls)),
        "an entry that is NaN": both(first_entry(nans)),
        "an entry of words": both(first_entry(words)),
    }


def check_of(level, name):
    """Some levels report as a finding that one side has something alone, and values that differ."""
    if level == "culprit" and ("3x + 1" in name or "no value" in name):
        return found
    return nothing if level in ("culprit", "error") else nothing_or_found


def tests_of(msprobe, cases):
    """A case: its name, what writes its input, the command, and what is expected of it."""
    def test(write, words, check):
        def body(scratch):
            write(scratch)
            check(msprobe, scratch, words)
        return body

    harness.check(len({name for name, *_ in cases}) == len(cases), "two cases have one name")
    return [(name, test(write, words, check)) for name, write, words, check in cases]
