# SPDX-License-Identifier: Apache-2.0
"""Turns `Where` into names of entries, by dump.json and construct.json of a recorded run."""

import dataclasses
import functools
import json
import pathlib
import re

# parameters_grad has no number before release 26 of the Python tool.
_MODULE = re.compile(r"Module\.(?P<path>.*)\.\w+\.(?P<way>forward|backward|parameters_grad)(\.\d+)?$")
_CALL = re.compile(r"\w+\.(?P<op>\w+)\.(?P<number>\d+)\.(?P<way>forward|backward)$")


class Dump:
    """The entries of one step of one rank, in the order of the file."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        data = json.loads((folder / "dump.json").read_text(encoding="utf-8"))["data"]
        self.names = list(data)
        self.parents = json.loads((folder / "construct.json").read_text(encoding="utf-8"))
        self.with_parameters = {name for name, entry in data.items() if entry.get("parameters")}

    def parent(self, name):
        return self.parents.get(name)

    def around(self, name):
        """The module or modules around an entry, nearest first."""
        while (name := self.parent(name)) is not None:
            yield name


@functools.lru_cache(maxsize=64)
def load(folder):
    return Dump(folder)


def path_of(name):
    """The path of a module's entry; the whole name of other parents (optimizer)."""
    if name is None:
        return ""
    match = _MODULE.match(name)
    return match["path"] if match else name


def _calls(dump, where):
    """Calls in the order of their numbers: backwards come the other way round."""
    calls = []
    for name in dump.names:
        match = _CALL.match(name)
        if match and match["op"] == where.op and match["way"] == where.way:
            if where.path is None or path_of(dump.parent(name)) == where.path:
                calls.append((int(match["number"]), name))
    return [name for _, name in sorted(calls)]


def _modules(dump, path, way):
    for name in dump.names:
        match = _MODULE.match(name)
        if match and path in (None, match["path"]) and match["way"] == way:
            yield name


def resolve(dump, where):
    """Names that are right answers for this place, the guilty entry first."""
    if where.op == "*parameters*":
        modules = [name for name in dump.names if name in dump.with_parameters]
        inside = [name for name in dump.names if dump.parent(name) in set(modules)]
        return modules + inside
    if where.op == "*parent*":
        return [name for name in dump.names if path_of(dump.parent(name)) == where.path] + [where.path]
    if where.op == "*grad*":
        return [*_modules(dump, where.path, "parameters_grad"), *_modules(dump, where.path, "backward"),
                *(name for name in dump.names if name.endswith(".backward")
                  and path_of(dump.parent(name)) == where.path)]
    if where.op is None:
        return list(_modules(dump, where.path, where.way))
    calls = _calls(dump, where)
    if where.nth is not None:
        calls = calls[where.nth:where.nth + 1]
    found = list(calls)
    for name in calls:
        for number, module in enumerate(dump.around(name)):
            if (number == 0 or where.around) and module in set(dump.names):
                found.append(module)
        if where.way == "backward":
            found += _after_backward(dump, name)
    return list(dict.fromkeys(found))


def _after_backward(dump, name):
    """A wrong gradient also shows where it arrives: at the next backward, and at the module's parameters."""
    at = dump.names.index(name)
    following = [later for later in dump.names[at + 1:] if later.endswith(".backward")][:1]
    path = path_of(dump.parent(name))
    return following + list(_modules(dump, path, "parameters_grad"))


def _recorded(steps, where):
    """Places count the steps that are recorded."""
    return steps if where.step is None else [steps[min(where.step, len(steps) - 1)]]


def _names(places, side, folder, rank, steps):
    names = []
    for where in places:
        if where.side not in (None, side):
            continue
        for step in _recorded(steps, where):
            names += resolve(load(str(pathlib.Path(folder) / f"step{step}" / f"rank{rank}")), where)
    return list(dict.fromkeys(names))


def expectation(fault, sides, steps, ranks):
    """{"steps": ..., "ranks": ..., "target": names, "golden": names}; sides: {"target": folder of a task, ...}; steps:
    those recorded; ranks: how many there are."""
    rank = fault.rank or 0
    planted = sorted({_recorded(steps, where)[0] for where in fault.expect if where.step is not None})
    expected = {"steps": planted or list(steps), "ranks": list(range(ranks)) if fault.rank is None else [rank]}
    for side, folder in sides.items():
        expected[side] = _names(fault.expect, side, folder, rank, steps)
    if not expected["target"] and not expected["golden"]:
        # This recorder has no entry of the operation: the module around it is what can be named.
        modules = [dataclasses.replace(where, op=None) for where in fault.expect if where.path]
        for side, folder in sides.items():
            expected[side] = _names(modules, side, folder, rank, steps)
    if not expected["target"] and not expected["golden"]:
        raise LookupError(f"{fault.bench}.{fault.name}: no entry answers to {fault.expect}")
    return expected
