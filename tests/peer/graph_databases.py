# SPDX-License-Identifier: Apache-2.0
"""Compares the data bases of `msprobe graph_visualize --python-rules` with those of the Python tool, cell by cell, on
real dumps of two runs of a model: statistics, checksums and tensors, alone and compared in each way of pairing.

usage: graph_databases.py MSPROBE PYTHON [DUMPS]

DUMPS: a folder that make_real_dumps.py wrote; else it writes one.
"""

import json
import math
import re
import sqlite3
import subprocess
import sys

from forked_runs import python_tool
from recorded_pairs import recorded_pairs, tell

WAYS = ([], ["-fm"], ["-lm"], ["-oc"])
METRICS = ("Cosine", "EucDist", "MaxRelativeErr")  # of tensors
TABLES = ("tb_nodes", "tb_stack", "tb_config")


def read(folder):
    """Rows by table and id; stacks, whose numbers are those of a run, as their lines."""
    path, = folder.glob("*.vis.db")
    with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        tables = {table: {row["id"]: dict(row) for row in connection.execute(f"SELECT * FROM {table}")}
                  for table in TABLES}
    for row in tables["tb_nodes"].values():
        row["stack"] = tables["tb_stack"][row.pop("stack_id")]["stack_info"]
    return tables


def same_text(member, ours, theirs):
    """Equal, or metrics that differ in the last digits: the Python tool sums in another order, in float32."""
    if ours == theirs:
        return True
    if member not in METRICS:
        return False
    numbers = [re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", str(text)) for text in (ours, theirs)]
    return all(numbers) and math.isclose(float(ours), float(theirs), rel_tol=1e-6, abs_tol=1e-11)


def differences(name, ours, theirs):
    for table in TABLES[::2]:
        for key in sorted(set(ours[table]) ^ set(theirs[table])):
            yield f"{name}: {table}: only {'ours' if key in ours[table] else 'theirs'}: {key}"
        for key in set(ours[table]) & set(theirs[table]):
            for column, expected in theirs[table][key].items():
                got = ours[table][key][column]
                if column not in ("input_data", "output_data"):
                    if got != expected:
                        yield f"{name}: {key}: {column}: {got!r}, not {expected!r}"
                    continue
                got, expected = json.loads(got), json.loads(expected)
                if list(got) != list(expected):
                    yield f"{name}: {key}: {column}: items {list(got)}, not {list(expected)}"
                    continue
                for item, members in expected.items():
                    if list(got[item]) != list(members):
                        yield f"{name}: {item}: keys {list(got[item])}, not {list(members)}"
                    for member, text in members.items():
                        if not same_text(member, got[item].get(member), text):
                            yield f"{name}: {item}: {member}: {got[item].get(member)!r}, not {text!r}"


def check(msprobe, tool, scratch, name, arguments):
    """The differences of one run, and how many nodes it has."""
    folders = [scratch / re.sub(r"\W+", "_", name) / side for side in ("ours", "theirs")]
    for folder in folders:
        folder.mkdir(parents=True)
    command = ["graph_visualize", *arguments, "-o"]
    our_command = [msprobe, *command, str(folders[0]), "--python-rules"]
    ours = subprocess.run(our_command, capture_output=True, text=True, check=False)
    theirs = tool.run([*command, str(folders[1])])
    if ours.returncode != 0 or theirs.returncode != 0:
        return [f"{name}: status {ours.returncode} and {theirs.returncode}\n{ours.stderr}{theirs.stdout[-2000:]}"], 0
    tables = [read(folder) for folder in folders]
    return list(differences(name, *tables)), len(tables[1]["tb_nodes"])


def main(msprobe, python, dumps=None):
    failed = False
    with recorded_pairs(python, dumps) as (scratch, pairs), python_tool(python) as tool:
        for variant, target, golden in pairs:
            runs = [(f"{variant} {' '.join(way)}".strip(), ["-tp", target, "-gp", golden, *way]) for way in WAYS]
            for name, arguments in [(f"{variant}, one run", ["-tp", target, "-oc"]), *runs]:
                found, nodes = check(msprobe, tool, scratch, name, arguments)
                failed |= tell(name, f"{nodes} nodes", found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
