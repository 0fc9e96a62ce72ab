# SPDX-License-Identifier: Apache-2.0
"""The names of PyTorch's functions, for every front end that records them under these names: api_names.json of the
PyTorch front end, and the user's list next to it."""

import os
import sys

from msprobe import _native

from . import closing, lists, operation_table, session, wrapping
from .common import log

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pytorch")
# The groups under the names that support_wrap_ops.yaml uses.
_LISTED = {"functional": "functional", "tensor": "tensor", "torch": "torch", "_VF": "vf", "distributed": "distributed",
           "torch_npu": "npu", "mindspeed": "mindspeed"}
_DROPOUTS = ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout")

PREFIXES = {"functional": "Functional", "tensor": "Tensor", "torch": "Torch", "vf": "VF",
            "distributed": "Distributed", "npu": "NPU"}
names = wrapping.Names(os.path.join(_FOLDER, "api_names.json"))
_of_modules = {}  # name of a Python module -> names of its functions that are still to be found
_asked = {}  # the user's list
_own = []  # functions of the user's rows, with their modules
_MINDSPEED = "mindspeed.ops"


def use_lists():
    """Reads what the configuration says about functions: the user's list, the one in the package or another file, and the
    user's rows of operations."""
    _use_rows(session.setting("operations"))
    _asked.clear()
    _asked.update(lists.read_lists(session.setting("support_wrap_ops") or os.path.join(_FOLDER, "support_wrap_ops.yaml")))
    for group, listed in _asked.items():
        if group in _LISTED:
            names.extend(_LISTED[group], listed)
        else:
            _of_modules.setdefault(group, []).extend(listed)
    for name in _of_mindspeed():
        module, _, function = name.rpartition(".")
        _of_modules.setdefault("%s.%s" % (_MINDSPEED, module), []).append(function)


def _use_rows(path):
    _own.clear()
    if path is None:
        return
    for name, row in operation_table.read_own(path).items():
        functions = row.get("recorded", [])
        _own.extend(functions)
        if "risk" in row:
            for known in [name, *row.get("also", []), *functions]:
                session.checked(_native.set_risk, known.rpartition(".")[2], row["risk"])
    for function in _own:
        module, _, last = function.rpartition(".")
        _of_modules.setdefault(module, []).append(last)


def _of_mindspeed():
    """Returns the functions of MindSpeed. Each is in a separate module, which a program may import at any time."""
    return names.choose({"mindspeed": []}, None)["mindspeed"]


def find_listed(registry):
    """Wraps the listed functions of Python modules that have been imported by now."""
    known = {"%s.%s" % (_MINDSPEED, name) for name in names.add("mindspeed")}  # some releases lack some of them
    for module, listed in list(_of_modules.items()):
        found = sys.modules.get(module)
        if found is None:
            continue
        del _of_modules[module]
        for name in listed:
            place = wrapping.find(found, name)
            if place is not None:
                registry.add_found(place[0], place[1], "MindSpeed" if module.startswith(_MINDSPEED) else module)
            elif "%s.%s" % (module, name) not in known:
                log.warn("%s has no function %s: it is not recorded" % (module, name))


def without_effect(namespaces):
    """Describes the parts of the user's list and rows that had no effect. namespaces(group): as for a registry."""
    missing = [name.rpartition(".")[0] for name in _own]
    missing = [module for module in dict.fromkeys(missing) if module not in sys.modules]
    told = [_unknown_in_list(namespaces)]
    if missing:
        told.append("operations: nothing has imported %s" % closing.some(missing))
    return [text for text in told if text]


def _unknown_in_list(namespaces):
    """Describes the part of the user's list that had no effect; None if all of it had. namespaces(group): as for a
    registry."""
    missing, functions, reasons = [], [], []
    for group, wanted in _asked.items():
        if not wanted:
            continue
        if group == "aten":
            reasons.append("operators of aten are not recorded (nor does the Python tool record them on a CPU)")
        elif group not in _LISTED or group == "mindspeed":
            missing += [group] if group not in sys.modules else []
        else:
            spaces = namespaces(_LISTED[group])
            missing += [group] if not spaces else []
            functions += ["%s.%s" % (group, name) for name in (name.lstrip("-") for name in wanted)
                          if spaces and not any(wrapping.find(space, name) for space in spaces)]
    if missing:
        reasons.append("nothing has imported %s" % closing.some(missing))
    if functions:
        reasons.append("there is no %s" % closing.some(functions))
    return "support_wrap_ops: " + "; ".join(reasons) if reasons else None


def add(prefix, name):
    """Registers a function with the extension and returns its number; its calls are named `<prefix>.<name>.<n>`."""
    return wrapping.add_api(names, prefix, name, prefix == "Distributed", prefix == "Functional" and name in _DROPOUTS)


def print_listed(functions):
    """Prints the functions in the format of support_wrap_ops.yaml."""
    for listed, group in _LISTED.items():
        print("%s:" % listed)
        for function in functions.get(group) or (_of_mindspeed() if group == "mindspeed" else ()):
            print("  - " + function)
