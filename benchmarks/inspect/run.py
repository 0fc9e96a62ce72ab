#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `msprobe inspect` on what make_executing.py and make_benign.py made, and prints how many pass.

usage: run.py MSPROBE CORPUS [--findings FILE] [--scanners PYTHON]

CORPUS has executing/, benign/, repos/ and perhaps templates/, each with a folder per case. FILE gets what was wrong, newest
on top. PYTHON is one that has picklescan, modelscan and fickling, to be run on the same folders.
"""

import argparse
import concurrent.futures
import json
import re
import subprocess
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Tuple


class Said(NamedTuple):
    status: int
    reason: str


def inspect(msprobe: str, level: str, path: Path) -> Said:
    try:
        done = subprocess.run([msprobe, "inspect", "--fail-on", level, str(path)], check=False, capture_output=True, text=True, errors="replace", timeout=120)
    except subprocess.TimeoutExpired:
        return Said(-1, "took longer than 120 s")
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    reasons = [line for line in lines if re.search(r"unknown|dangerous|error|warning|problem", line)]
    return Said(done.returncode, " | ".join(reasons[:3] or lines[:2]).replace(str(path), path.name)[:300])


def judge(msprobe: str, folders: List[Path]) -> Dict[Tuple[Path, str], Said]:
    tasks = [(folder, level) for folder in folders for level in ("unknown", "dangerous")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(zip(tasks, pool.map(lambda task: inspect(msprobe, task[1], task[0]), tasks)))


def folders_of(corpus: Path, kind: str) -> List[Path]:
    return sorted(path for path in (corpus / kind).glob("*") if path.is_dir() and any(path.iterdir()))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("msprobe")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--scanners")
    options = parser.parse_args()

    notes = [f"## {time.strftime('%H:%M:%S', time.gmtime())} UTC, {options.msprobe}\n"]
    loads = {facts["name"]: facts for facts in json.loads((options.corpus / "executing/cases.json").read_text())}
    for kind, should_pass in (("executing", False), ("outside", False), ("benign", True), ("repos", True), ("templates", True)):
        folders = folders_of(options.corpus, kind)
        if not folders:
            continue
        said = judge(options.msprobe, folders)
        passed = {level: [folder for folder in folders if said[folder, level].status == 0] for level in ("unknown", "dangerous")}
        line = f"{kind}: of {len(folders)} {len(passed['unknown'])} pass --fail-on unknown, {len(passed['dangerous'])} --fail-on dangerous"
        print(line)
        notes.append(f"**{line}**\n")
        for folder in folders:
            fine = said[folder, "unknown"].status == 0
            if fine == should_pass and not (should_pass and said[folder, "dangerous"].status):
                continue
            told = said[folder, "unknown"]
            notes.append(f"- `{folder}`: {'PASSES' if fine else 'does not pass'}: status {told.status}: {told.reason}")
            if not should_pass:
                notes.append(f"  - executes by: `{loads.get(folder.name, {}).get('load', 'see the folder')}`")
            elif said[folder, "dangerous"].status:
                notes.append(f"  - even --fail-on dangerous: status {said[folder, 'dangerous'].status}")
        if options.scanners:
            asked = json.dumps([str(folder) for folder in folders])
            scanners = subprocess.run([options.scanners, Path(__file__).with_name("scanners.py")], input=asked, capture_output=True, text=True, check=True)
            line = ", ".join(f"{tool} {len(clean)}" for tool, clean in json.loads(scanners.stdout).items())
            print(f"  clean for others: {line}")
            notes.append(f"clean for others: {line}")
    if options.findings:
        before = options.findings.read_text() if options.findings.exists() else ""
        options.findings.write_text("\n".join(notes) + "\n\n" + before)


if __name__ == "__main__":
    main()
