# SPDX-License-Identifier: Apache-2.0
"""Comparison of two result tables cell by cell, the way the golden cases and the peer test need it.

Numbers are equal within 1e-6 relative, or within the last digit that the Python tool prints for the rounded
metrics; everything else is equal as text, blanks included (26.x prints an infinite number as " inf").
"""

import csv
import io
import math
import re

# Rounded to 12 decimals by the Python tool; a cosine above 0.9999 even to 6.
ROUNDED = {
    "Cosine": 1.000001e-6,
    "MaxAbsErr": 1.000001e-12,
    "MaxRelativeErr": 1.000001e-12,
    "One Thousandth Err Ratio": 1.000001e-12,
    "Five Thousandths Err Ratio": 1.000001e-12,
}
RELATIVE = 1e-6
# difference, relative error, statistic
DIFFERENCES = [
    ("Max diff", "MaxRelativeErr", "max"),
    ("Min diff", "MinRelativeErr", "min"),
    ("Mean diff", "MeanRelativeErr", "mean"),
    ("L2norm diff", "NormRelativeErr", "l2norm"),
]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def parse_number(cell):
    """(value, is_percentage) of a finite number as the tool prints it, else None."""
    percent = cell.endswith("%")
    text = cell[:-1] if percent else cell
    if not NUMBER.fullmatch(text):
        return None
    value = float(text)
    return (value, percent) if math.isfinite(value) else None


def reading_slack(header, row):
    """Column -> absolute tolerance of the differences of statistics.

    The Python tool turns statistics into text and has pandas read them back, which stops after 17 digits,
    leading zeros included. The difference of two nearly equal numbers shows it: an exact power of two comes
    out changed in its sixth digit there.
    """
    cells = dict(zip(header, row))
    slack = {}
    for difference, relative, statistic in DIFFERENCES:
        if difference not in cells:
            continue
        values = [parse_number(cells.get(f"{side} {statistic}", "")) for side in ("NPU", "Bench")]
        if None in values:
            continue
        npu, bench = (abs(value) for value, _ in values)
        slack[difference] = 2e-16 + 1e-15 * max(npu, bench)
        if bench > 0:
            slack[relative] = 100 * slack[difference] / bench
    return slack


def cells_equal(column, ours, theirs, slack=0.0):
    """`slack` is an absolute tolerance on top of what the column has anyway."""
    if ours == theirs:
        return True
    left, right = parse_number(ours), parse_number(theirs)
    if left is None or right is None or left[1] != right[1]:
        return False
    difference = abs(left[0] - right[0])
    return difference <= RELATIVE * max(abs(left[0]), abs(right[0])) or difference <= max(slack, ROUNDED.get(column, 0.0))


def read_table(path):
    """Header and rows of a csv file; a line break inside quotes stays as it is."""
    with open(path, encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(io.StringIO(stream.read())))
    if not rows:
        raise ValueError(f"{path}: empty table")
    return rows[0], rows[1:]


class TableDifference:
    """Counts, and the first mismatches as lines for a person."""

    def __init__(self):
        self.rows = 0
        self.equal = 0
        self.different = 0
        self.result_different = 0
        self.structure = []
        self.lines = []
        self.columns = {}

    @property
    def clean(self):
        return not self.structure and self.different == 0


def compare_tables(ours, theirs, forgive_reading=False):
    """Both arguments are (header, rows). `forgive_reading` grants what reading_slack() describes."""
    outcome = TableDifference()
    header, our_rows = ours
    expected_header, expected_rows = theirs
    outcome.rows = len(expected_rows)
    if header != expected_header:
        outcome.structure.append(f"columns differ: ours {header}, expected {expected_header}")
        return outcome
    if len(our_rows) != len(expected_rows):
        outcome.structure.append(f"{len(our_rows)} rows, expected {len(expected_rows)}")
    for index, (left, right) in enumerate(zip(our_rows, expected_rows)):
        if len(left) != len(right) or len(left) != len(header):
            outcome.structure.append(f"row {index + 1}: {len(left)} cells, expected {len(right)}")
            continue
        slack = reading_slack(header, right) if forgive_reading else {}
        for column, mine, wanted in zip(header, left, right):
            if cells_equal(column, mine, wanted, slack.get(column, 0.0)):
                outcome.equal += 1
                continue
            outcome.different += 1
            outcome.columns[column] = outcome.columns.get(column, 0) + 1
            if column == "Result":
                outcome.result_different += 1
            outcome.lines.append(f"row {index + 1} ({left[0]}), {column}: {mine!r}, expected {wanted!r}")
    return outcome
