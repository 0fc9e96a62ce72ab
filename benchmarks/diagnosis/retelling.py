#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One recording told differently: what a diagnosis says of a pair must not depend on it.

    benchmarks/diagnosis/retelling.py NAME FROM TO [--side target|golden]

Copies the folder FROM of a run (step<N>/rank<R>/dump.json, construct.json and stack.json) to TO as NAME tells the
`side` of a pair. Several names are joined by "+". Python 3.9 and its standard library.
"""

import argparse
import json
import math
import os
import pathlib
import re
import shutil
import sys
import zlib

_CALL = re.compile(r"(\w+\.\w+)\.(\d+)\.(forward|backward)$")
_FILES = ("dump.json", "construct.json", "stack.json")
_STATISTICS = ("Max", "Min", "Mean", "Norm")


class Rank:
    """The files of one rank in one step."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {name: json.loads((folder / name).read_text(encoding="utf-8"))
                      for name in _FILES if (folder / name).exists()}
        self.names = {name: name for name in self.data}  # recorded -> told, None where it is left out
        self.tensor_files = {path.name: path for path in folder.glob("dump_tensor_data/*")}  # told -> recorded

    @property
    def data(self):
        return self.files["dump.json"]["data"]

    def unsign(self):
        """Other numbers are those of another recorder."""
        self.files["dump.json"].pop("recorder", None)

    def tensors(self, within=None):
        pending = [self.data if within is None else within]
        while pending:
            item = pending.pop()
            if isinstance(item, dict) and "Norm" in item:
                yield item
            elif isinstance(item, (dict, list)):
                pending += item.values() if isinstance(item, dict) else item

    def rename(self, told):
        """told(name): the new name of an entry, None without it."""
        self.names = {name: now and told(now) for name, now in self.names.items()}
        files = dict(self.tensor_files)
        for name, entry in self.data.items():
            for tensor in self.tensors(entry) if told(name) else ():
                before = tensor.get("data_name")
                if before and before.startswith(f"{name}."):
                    tensor["data_name"] = told(name) + before[len(name):]
                    files[tensor["data_name"]] = self.tensor_files[before]
        self.tensor_files = files
        self.files["dump.json"]["data"] = {told(name): entry for name, entry in self.data.items() if told(name)}
        if "construct.json" in self.files:
            parents = self.files["construct.json"]
            self.files["construct.json"] = {told(name): self._parent(parents, parent, told)
                                            for name, parent in parents.items() if told(name)}
        for stack in self.files.get("stack.json", {}).values():
            stack[0] = [told(name) for name in stack[0] if told(name)]

    @staticmethod
    def _parent(parents, name, told):
        """The nearest of the enclosing modules that is left."""
        while name in parents and not told(name):
            name = parents[name]
        return told(name) if isinstance(name, str) and name in parents else name

    def write(self, folder):
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            (folder / name).write_text(json.dumps(content), encoding="utf-8")
        if self.tensor_files:
            (folder / "dump_tensor_data").mkdir()
        for tensor in self.tensors():
            told = tensor.get("data_name")
            if told in self.tensor_files and not (folder / "dump_tensor_data" / told).exists():
                _linked(self.tensor_files[told], folder / "dump_tensor_data" / told)


def _linked(source, destination):
    """A symbolic link out of the dump would be refused."""
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)


# ---------------------------------------------------------------------- changes; ranks: step by step


def without_modules(ranks):
    for rank in ranks:
        rank.files["dump.json"]["level"] = "L1"
        rank.rename(lambda name: None if name.startswith("Module.") else name)
        if "construct.json" in rank.files:
            rank.files["construct.json"] = {}  # as level L1 has it


def only_modules(ranks):
    for rank in ranks:
        rank.files["dump.json"]["level"] = "L0"
        rank.rename(lambda name: name if name.startswith("Module.") else None)


def missing_5_percent(ranks):
    for rank in ranks:
        rank.rename(lambda name: None if zlib.crc32(name.encode()) % 20 == 0 else name)


def shift_calls(ranks):
    """As if each function had been called one to three times more before."""
    def told(name):
        match = _CALL.match(name)
        if not match:
            return name
        return f"{match[1]}.{int(match[2]) + 1 + zlib.crc32(match[1].encode()) % 3}.{match[3]}"
    for rank in ranks:
        rank.rename(told)


def cut_70(ranks):
    """The recording ends where 70 % of its entries are written."""
    left = int(0.7 * sum(len(rank.data) for rank in ranks))
    for rank in ranks:
        lost = set(list(rank.data)[max(left, 0):])
        left -= len(rank.data)
        rank.rename(lambda name, lost=lost: None if name in lost else name)


def six_digits(ranks):
    for rank in ranks:
        rank.unsign()
        for tensor in rank.tensors():
            for name in _STATISTICS:
                if isinstance(tensor.get(name), float):
                    tensor[name] = float(f"{tensor[name]:.6g}")


def sums(size):
    """Norm and Mean as of another order of summing; the same for the same tensor."""
    def tell(ranks):
        for rank in ranks:
            rank.unsign()
            for tensor in rank.tensors():
                if "int" in tensor["dtype"] or "bool" in tensor["dtype"] or not _are_numbers(tensor):
                    continue
                content = repr([tensor["shape"], tensor["Max"], tensor["Min"], tensor["Norm"]])
                mean_square = tensor["Norm"] / math.sqrt(max(math.prod(tensor["shape"]), 1))
                tensor["Mean"] += size * _uniform(content + "Mean") * mean_square
                tensor["Norm"] *= 1 + size * _uniform(content)
    return tell


def null_integers(ranks):
    for rank in ranks:
        rank.unsign()
        for tensor in rank.tensors():
            if "int" in tensor["dtype"] and tensor["shape"]:
                tensor["Mean"] = tensor["Norm"] = None


def _are_numbers(tensor):
    return all(isinstance(tensor.get(name), (int, float)) and math.isfinite(tensor[name]) for name in _STATISTICS)


def _uniform(text):
    return zlib.crc32(text.encode()) / 2**31 - 1


# name -> (sides, what is done to them); "exchange" is the reader's part
RETELLINGS = {
    "exchange": ((), None),
    "without-modules": (("target", "golden"), without_modules),
    "only-modules": (("target", "golden"), only_modules),
    "missing-5-percent": (("target", "golden"), missing_5_percent),
    "shift-calls": (("target",), shift_calls),
    "cut-70": (("target",), cut_70),
    "six-digits": (("target", "golden"), six_digits),
    "sums-3e-7": (("target",), sums(3e-7)),
    "sums-1e-6": (("target",), sums(1e-6)),
    "null-integers": (("target",), null_integers),
}


def names_of(text):
    names = text.split("+")
    for name in names:
        if name not in RETELLINGS:
            raise SystemExit(f"{name}: none of {', '.join(RETELLINGS)}")
    return names


def changes(names, side):
    return [RETELLINGS[name][1] for name in names if side in RETELLINGS[name][0]]


def retell(names, side, source, destination):
    """Writes the folder of a task of one run anew. Returns per step what the entries are called now."""
    folders = {}
    for folder in sorted(pathlib.Path(source).glob("step*/rank*"), key=_step):
        folders.setdefault(folder.name, []).append(Rank(folder))
    told = {}
    for ranks in folders.values():
        for change in changes(names, side):
            change(ranks)
        for rank in ranks:
            if rank.data:
                rank.write(pathlib.Path(destination) / rank.folder.relative_to(source))
            told.setdefault(_step(rank.folder), {}).update(rank.names)
    return told


def expectation(case, told):
    """The case's expectation in the names of told[side], as `retell` returns it, for the sides that it rewrote; None where
    a side has lost all of them."""
    expect = dict(case["expect"])
    for side in told:
        names = [told[side][step].get(name, name) for name in expect[side] for step in expect["steps"]
                 if step in told[side]]
        names = list(dict.fromkeys(name for name in names if name))
        if expect[side] and not names:
            return None
        expect[side] = names
    return expect


def _step(folder):
    return int(re.search(r"\d+$", folder.parent.name)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("source")
    parser.add_argument("destination")
    parser.add_argument("--side", choices=("target", "golden"), default="target")
    options = parser.parse_args()
    if os.path.exists(options.destination):
        raise SystemExit(f"{options.destination}: is there already")
    retell(names_of(options.name), options.side, options.source, options.destination)
    return 0


if __name__ == "__main__":
    sys.exit(main())
