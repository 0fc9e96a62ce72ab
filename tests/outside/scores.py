#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: scores.py MSPROBE

Scores `compare` on recorded pairs of runs, made by people who had not seen the source. Exit status 1: a number is worse than
in scores.json, or the pack has other pairs. If a number is better, the line to write there is printed. The packs lie beside the
clone and are not part of it; without them the check is skipped.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PACKS = HERE.parents[2] / "shared" / "golden" / "outside"
LAST_LINE = re.compile(r"^mistakes (\d+)/(\d+) exact \(.*\), right pairs (\d+)/(\d+) alarm: ", re.MULTILINE)


def score(msprobe, pack):
    with tempfile.TemporaryDirectory(prefix="msprobe-outside-") as folder:
        subprocess.run(["tar", "-C", folder, "-xJf", PACKS / f"{pack}.tar.xz"], check=True)
        # Its status is about a goal, not about the numbers in scores.json.
        done = subprocess.run([sys.executable, PACKS / "score.py", msprobe, folder], capture_output=True, text=True, check=False)
    numbers = LAST_LINE.search(done.stdout)
    if not numbers:
        raise SystemExit(f"{pack}: no score\n{done.stdout}{done.stderr}")
    return dict(zip(("exact", "mistakes", "alarms", "right pairs"), map(int, numbers.groups()))), done.stdout


def main():
    if not PACKS.is_dir():
        print(f"skipped: the packs are not there: {PACKS}")
        return 0
    bad = 0
    for pack, expected in json.loads((HERE / "scores.json").read_text()).items():
        found, text = score(sys.argv[1], pack)
        line = f'"{pack}": {json.dumps(found)}'
        if (found["mistakes"], found["right pairs"]) != (expected["mistakes"], expected["right pairs"]):
            print(f"{text}other pairs: {line}, in {HERE.name}/scores.json {json.dumps(expected)}")
            bad += 1
        elif found["exact"] < expected["exact"] or found["alarms"] > expected["alarms"]:
            print(f"{text}worse: {line}, in {HERE.name}/scores.json {json.dumps(expected)}")
            bad += 1
        elif found != expected:
            print(f"better: write into {HERE.name}/scores.json: {line}")
        else:
            print(f"the same: {line}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
