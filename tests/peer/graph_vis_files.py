# SPDX-License-Identifier: Apache-2.0
"""Compares the .vis files of `msprobe graph --file_type vis --python-rules` with those of the Python tool 8.1.1, byte by
byte, on real dumps of two runs of a model: built, compared, and compared with -f, with and without whole call stacks.

usage: graph_vis_files.py MSPROBE PYTHON RELEASE8 [DUMPS]

RELEASE8: the folder that 8.1.1 was installed to. DUMPS: a folder that make_real_dumps.py wrote; else it writes one.
"""

import json
import math
import re
import subprocess
import sys

from recorded_pairs import recorded_pairs, tell

# 8.1.1 as its command line has it; NumPy 2 dropped names that it uses.
RUN = """
import argparse, sys
import numpy
for name, kind in (("unicode_", "str_"), ("string_", "bytes_"), ("float_", "float64")):
    if not hasattr(numpy, name):
        setattr(numpy, name, getattr(numpy, kind))
sys.path.insert(0, sys.argv[1])
from msprobe.visualization.graph_service import _graph_service_command, _graph_service_parser
parser = argparse.ArgumentParser()
_graph_service_parser(parser)
arguments = parser.parse_args(sys.argv[2:])
arguments.framework = "pytorch"
_graph_service_command(arguments)
"""


def files_of(folder):
    return {re.sub(r"_\d{14}", "", path.name): path.read_text() for path in folder.glob("*.vis")}


def differences(place, ours, theirs):
    """Metrics of tensors may differ in the last digits: the Python tool sums in another order."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield f"{place}: members {list(ours)[:20]}, not {list(theirs)[:20]}"
        for key in set(ours) & set(theirs):
            yield from differences(f"{place}: {key}", ours[key], theirs[key])
    elif json.dumps(ours) != json.dumps(theirs):
        numbers = [re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", str(text)) for text in (ours, theirs)]
        metric = place.endswith(("Cosine", "EucDist")) and all(numbers)
        if not metric or not math.isclose(float(ours), float(theirs), rel_tol=1e-5, abs_tol=2e-6):
            yield f"{place}: {ours!r}, not {theirs!r}"


def check(scratch, name, request, options, msprobe, tool):
    """What differs in one run, and how much there is."""
    (scratch / "compare.json").write_text(json.dumps({**request, "is_print_compare_log": False}))
    folders = [scratch / re.sub(r"\W+", "_", name) / side for side in ("ours", "theirs")]
    arguments = ["-i", str(scratch / "compare.json"), *options, "-o"]
    commands = ([msprobe, "graph", *arguments, str(folders[0]), "--file_type", "vis", "--python-rules"],
                [*tool, *arguments, str(folders[1])])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return [f"{command[0]} ended with {done.returncode}: {(done.stderr + done.stdout)[-1000:]}"], "no files"
    ours, theirs = map(files_of, folders)
    if set(ours) != set(theirs) or not ours:
        return [f"files {sorted(ours)}, not {sorted(theirs)}"], f"{len(ours)} files"
    found = [line for file in sorted(ours) if ours[file] != theirs[file]
             for line in differences(file, json.loads(ours[file]), json.loads(theirs[file]))]
    return found, f"{len(ours)} files, {sum(map(len, theirs.values())):,} bytes"


def main(msprobe, python, release8, dumps=None):
    failed = False
    tool = [python, "-W", "ignore", "-c", RUN, release8]
    with recorded_pairs(python, dumps) as (scratch, pairs):
        for variant, target, golden in pairs:
            one = {"npu_path": target}
            two = {**one, "bench_path": golden}
            for name, request, options in (("built", one, ["-oc"]), ("compared", two, []),
                                           ("compared -f", two, ["-f", "-cs", "-oc"])):
                found, size = check(scratch, f"{variant} {name}", request, options, msprobe, tool)
                failed |= tell(f"{variant} {name}", size, found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
