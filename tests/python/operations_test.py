# SPDX-License-Identifier: Apache-2.0
"""data/operations.yaml has a row with the right arguments for every function of the installed PyTorch that is recorded."""

import inspect
import itertools
import os
import re
import sys
import unittest

from helpers import *
from msprobe.core import torch_apis
from msprobe.pytorch import apis

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "src", "dump"))
import make_operations

TABLE = make_operations.read(os.path.join(SOURCE, "data", "operations.yaml"))
PREFIXES = {**torch_apis.PREFIXES, "mindspeed": "MindSpeed"}


def recorded():
    """(group, name of a function): what the collector records here, or would record with torch_npu and MindSpeed."""
    found = apis.find_functions()
    for group in ("npu", "mindspeed"):
        found[group] = torch_apis.names.add(group)
    return [(group, name) for group, names in found.items() for name in names]


def of_python(function):
    """Names that may be given by position; None where they are not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return None
    names = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            break
        names.append("input" if parameter.name == "self" else parameter.name)
    return names or None


def of_schemas(name, is_method):
    """The same of an operator; where its overloads differ, all their names: `dim|other`."""
    overloads = []
    schemas = torch._C._jit_get_schemas_for_operator("aten::" + name)
    of_tensors = [schema for schema in schemas if any("Tensor" in str(result.type) for result in schema.returns)]
    for schema in of_tensors or schemas:  # not those of lists and numbers
        words = schema.overload_name.lower()
        arguments = list(schema.arguments)
        if words.endswith("out") or any(argument.is_out for argument in arguments) or "name" in words:
            continue
        if "Dimname" in str(schema) or "..." in str(schema):
            continue
        first = arguments[:1]
        if any(argument.name in ("self", "input", "a", "b", "x") and "Tensor" not in str(argument.type) for argument in first):
            continue  # of numbers
        names = [argument.name for argument in arguments if not argument.kwarg_only]
        if is_method and "self" not in names:
            continue
        if is_method:
            names.remove("self")
            names.insert(0, "self")
        overloads.append(["input" if name == "self" else name for name in names])
    if not overloads:
        return None
    return ["|".join(sorted({names[position] for names in overloads if len(names) > position}))
            for position in range(max(map(len, overloads)))]


def installed(group, name):
    last = name.split(".")[-1]
    if group == "functional":
        function = getattr(functional, name)
        names = of_python(function)
        if names is None:  # one of two, by an argument
            names = of_python(getattr(functional, "_" + name, None)) or of_schemas(last, False)
        return names
    if group == "tensor":
        return of_python(getattr(torch.Tensor, name)) or of_schemas(last, True)
    if group == "torch":
        if name.startswith("linalg."):
            return of_schemas("linalg_" + last, False)
        return of_python(getattr(torch, name, None)) or of_schemas(last, False)
    if group == "distributed":
        found = apis.wrapping.find(torch.distributed, name) or apis.wrapping.find(torch.distributed.distributed_c10d, name)
        return of_python(found[2])
    return None


def in_table(row, prefix):
    """(names that may be given by position, whether the row leaves it open what follows); None where none are known."""
    signature = row.get(prefix, row.get("signature"))
    if not signature:
        return None
    older = re.sub(r"(\w+)@(\d+)\S*", lambda since: since[0] if int(since[2]) <= VERSION[0] else "", signature)
    return make_operations.names_of(older), "..." in signature.split()


class Operations(Case):
    def test_every_recorded_function_has_a_row(self):
        missing = ["%s.%s" % (PREFIXES[group], name) for group, name in recorded()
                   if PREFIXES[group] not in TABLE.get(make_operations.row_name(name), {}).get("in", [])]
        self.assertEqual(missing, [])

    def test_arguments_are_those_of_this_pytorch(self):
        differences = []
        compared = 0
        for group, name in recorded():
            names = installed(group, name)
            known = in_table(TABLE.get(make_operations.row_name(name), {}), PREFIXES[group])
            if names is None or known is None or name.startswith("__"):
                continue
            compared += 1
            listed, is_open = known
            if "|" not in "".join(listed):  # the row ends where overloads differ
                names = list(itertools.takewhile(lambda name: "|" not in name, names))
            if name.endswith("_"):  # the row is that of the function without the mark, which may take more
                listed = listed[:listed.index("inplace")] if "inplace" in listed else listed[:len(names)]
                is_open = True
            if listed != (names[:len(listed)] if is_open else names):
                differences.append("%s.%s: %s here, %s in the table" % (PREFIXES[group], name, names, listed))
        print("signatures compared:", compared)
        self.assertEqual(differences, [])
        self.assertGreater(compared, 900)

    def test_rows_are_sorted(self):
        self.assertEqual(list(TABLE), sorted(TABLE))


if __name__ == "__main__":
    unittest.main()
