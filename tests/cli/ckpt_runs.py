# SPDX-License-Identifier: Apache-2.0
"""Runs of ckpt_compare with all results of each parameter."""

import csv

import harness


def compare(msprobe, scratch, first, second, *options):
    """The run, and the rows of its table by the names of parameters; none if it wrote no table."""
    words = ["ckpt_compare", str(first), str(second), "-o", "result.json", "--details", "details.csv", "--overwrite"]
    result = harness.run(msprobe, [*words, *options], scratch)
    table = scratch / "details.csv"
    if not table.exists():
        return result, {}
    with open(table, newline="", encoding="utf-8") as file:
        rows = {row["Name"]: row for row in csv.DictReader(file)}
    table.unlink()
    return result, rows
