#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""data/operations.yaml has a row for every function of the installed MindSpore that the collector records.

usage: mindspore_operations.py PACKAGE
"""

import pathlib
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, sys.argv[1])
sys.path.insert(0, str(SOURCE / "src" / "dump"))
import make_operations
import mindspore
from msprobe.mindspore import apis


def main():
    table = make_operations.read(SOURCE / "data" / "operations.yaml")
    known = set(table) | {name for row in table.values() for name in row.get("also", [])}
    found = [(group, name) for group, names in apis.find_functions().items() for name in names]
    missing = [f"{group} {name}" for group, name in found if make_operations.row_name(name) not in known]
    print(f"{len(found)} functions of MindSpore {mindspore.__version__}, {len(missing)} without a row")
    for name in missing:
        print(f"  {name}")
    if missing or len(found) < 500:
        sys.exit("data/operations.yaml is not complete, or the functions were not found")


main()
