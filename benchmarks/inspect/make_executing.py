#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes folders that execute code when their usual loader reads them, and keeps those that did so in a child process.

usage: make_executing.py FOLDER [NAME...]    (only the cases whose names begin so)

Writes FOLDER/CASE/... and FOLDER/cases.json: of each case its format, how it is loaded, and whether its kind was known.
A case whose library is missing, or whose payload does not run with the release that is there, is named and left out.
"""

import atexit
import collections
import functools
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Dict, List

import executing_code
import executing_configs
import executing_frameworks
import executing_pickles
import executing_templates
from cases import Case

SECONDS = 90


def all_cases(wanted: List[str]) -> List[Case]:
    cases: List[Case] = []
    for module in (executing_pickles, executing_frameworks, executing_configs, executing_templates, executing_code):
        cases += [case for case in module.cases() if not wanted or case.name.startswith(tuple(wanted))]
    return cases


def write(case: Case, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if callable(case.files):
        case.files(str(folder))
        return
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def in_child(log: Path, function) -> None:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        with open(os.devnull) as nothing, open(log, "w") as said:
            os.dup2(nothing.fileno(), 0)
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(SECONDS)
        function()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def executes(case: Case, folder: Path, log: Path) -> bool:
    """Loads a copy of the folder, and says whether the payload ran."""
    # Not TemporaryDirectory: the child would remove it at its exit.
    scratch = tempfile.mkdtemp()
    copy, here = Path(scratch, "model"), Path(scratch, "here")
    shutil.copytree(folder, copy, symlinks=True)
    here.mkdir()

    def load() -> None:
        os.chdir(here)
        os.environ.update(HOME=scratch, HF_HUB_OFFLINE="1")
        exec(compile(case.load, case.name, "exec"), {"folder": str(copy), "__name__": "__main__"})

    in_child(log, load)
    # A process that the payload started may need a moment.
    for _ in range(20):
        ran = any(name.startswith("PWNED") for name in os.listdir(here))
        if ran:
            break
        time.sleep(0.1)
    shutil.rmtree(scratch, ignore_errors=True)
    return ran


def try_group(folder: Path, cases: List[Case]) -> List[dict]:
    """Cases with the same libraries, which are loaded once: each case runs in a fork."""
    missing = [name for name in cases[0].needs if not importlib.util.find_spec(name)]
    if missing:
        return [{"name": case.name, "failed": "no " + ", ".join(missing)} for case in cases]
    for name in cases[0].needs:
        __import__(name)
    found = []
    for case in cases:
        log, target = folder / (case.name + ".log"), folder / case.name
        in_child(log, functools.partial(write, case, target))
        facts = {"name": case.name, "format": case.format, "known": case.known, "load": case.load}
        if not executes(case, target, log):
            shutil.rmtree(target, ignore_errors=True)
            facts["failed"] = (log.read_text(errors="replace").strip().splitlines() or ["the payload did not run"])[-1]
        else:
            log.unlink()
        found.append(facts)
    return found


def main() -> None:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    groups: Dict[tuple, List[Case]] = collections.defaultdict(list)
    for case in all_cases(wanted):
        groups[case.needs].append(case)
    record = folder / "cases.json"
    found = {facts["name"]: facts for facts in json.loads(record.read_text())} if record.exists() and wanted else {}
    for cases in groups.values():
        # A process for each set of libraries, without a network where the system can do that.
        answer, said = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(answer)
            if hasattr(os, "unshare"):
                os.unshare(os.CLONE_NEWNET)
            with os.fdopen(said, "w") as out:
                json.dump(try_group(folder, cases), out)
            os._exit(0)
        os.close(said)
        with os.fdopen(answer) as reader:
            told = reader.read()
        os.waitpid(child, 0)
        for facts in json.loads(told or json.dumps([{"name": case.name, "failed": "the libraries end the process"} for case in cases])):
            found[facts["name"]] = facts
            if "failed" in facts:
                print(f"left out: {facts['name']}: {facts['failed']}", flush=True)
    good = [facts for facts in found.values() if "failed" not in facts]
    record.write_text(json.dumps(list(found.values()), indent=1))
    formats = collections.Counter(facts["format"] for facts in good)
    print(f"{len(good)} cases execute, {sum(not facts['known'] for facts in good)} of kinds that were not known")
    print(", ".join(f"{name} {count}" for name, count in formats.most_common()))


if __name__ == "__main__":
    main()
