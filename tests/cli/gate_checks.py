# SPDX-License-Identifier: Apache-2.0
"""What the tests of gates (--fail-on) share: what a gate has to say, and dumps of which a part cannot be judged."""

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


def nothing(msprobe, scratch, words, told=TOLD, statuses=(1, 2)):
    """What could not be judged passes no gate, and is told."""
    result = harness.run(msprobe, words, scratch)
    said = f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
    harness.check(result.returncode in statuses, said)
    harness.check(re.search(told, result.stderr, re.M), said)
    harness.check("--help" not in result.stderr, said)  # no error of the command line


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


def tests_of(msprobe, cases):
    """A case: its name, what writes its input, the command, and what is expected of it."""
    def test(write, words, check):
        def body(scratch):
            write(scratch)
            check(msprobe, scratch, words)
        return body

    harness.check(len({name for name, *_ in cases}) == len(cases), "two cases have one name")
    return [(name, test(write, words, check)) for name, write, words, check in cases]
