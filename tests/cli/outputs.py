#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every output of every command where something lies already: a file, links, a pipe, a device, a folder.

One rule: a file that the command line names takes nobody's place without --overwrite. Files that msprobe names, in a folder
of results, take the place of those of an earlier run. A link is replaced, never what it leads to. What cannot be done is
one line and status 2, and touches nothing. And two runs in one second leave two results.

usage: outputs.py MSPROBE DATA
"""

import functools
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import every_command
import harness

SECRET = b"somebody's"
# Names with the time, of seconds or of nanoseconds: no two runs have the same.
TIMED = re.compile(r"\d{19}|\d{14}|[A-Z][a-z]{2}\d{2}_\d{2}-\d{2}-\d{2}|tfevents")
WITHOUT_FILES = {"inspect", "docs", "run_overflow_check"}
ELSEWHERE = {"bisect": "tests/python/command_test.py", "parse shell": "tests/cli/parse_shell.py"}
NAMED_BY_TIME = {"code_mapping", "compare", "merge_result", "nan_analyze", "overflow_check", "graph", "graph_visualize", "acc_check",
                 "multi_acc_check", "run_ut", "multi_run_ut", "api_precision_compare"}
FOLDER_OPTIONS = {"-o", "--db"}
CALLING = {"acc_check", "multi_acc_check", "run_ut", "multi_run_ut"}
# It refuses every call. The command writes the same files as with PyTorch, whose import would take most of the time.
RUNNER = """#!{python} -ISs
import json, os
def tell(answer):
    os.write(4, (json.dumps(answer) + "\\n").encode())
tell({{"hello": 1, "torch": "9.9", "device": "cpu"}})
for line in os.fdopen(3, "rb"):
    error = {{"stage": "lookup", "kind": "ValueError", "text": "not here", "ours": True}}
    tell({{"id": json.loads(line)["id"], "error": error}})
"""


@functools.cache
def runner_folder():
    folder = tempfile.TemporaryDirectory(prefix="msprobe-runner-")
    runner = pathlib.Path(folder.name, "runner")
    runner.write_text(RUNNER.format(python=sys.executable), encoding="utf-8")
    runner.chmod(0o700)
    return folder


def words_of(command, data):
    """A command line that works, less where its results go."""
    words = every_command.arguments(command, True, data)
    for option in FOLDER_OPTIONS & set(words):
        at = words.index(option)
        del words[at:at + 2]
    if command == "monitor alerts":
        words[words.index("AnomalyNan")] = "AnomalyTurbulence:0.01"
    if command in CALLING:
        words += ["--python", f"{runner_folder().name}/runner"]
    return words


def named_files(data):
    """The files that a command line names: (name of the case, words that end with the option, ending of the file). The first
    of several endings is tried in every way."""
    compare = words_of("compare", data)
    checkpoints = words_of("ckpt_compare", data)
    for ending in ("csv", "xlsx", "json", "jsonl", "html", "md", "xml", "sarif", "github.txt"):
        yield f"compare --output-file .{ending}", [*compare, "--output-file"], ending
    against = ["compare", "--against", compare[compare.index("-gp") + 1], compare[compare.index("-tp") + 1]]
    for ending in ("csv", "md"):
        yield f"compare --against --output-file .{ending}", [*against, "--output-file"], ending
    others = harness.data(f"{data}/golden", "compare") / "compare" / "ms_api"
    renamed = ["compare", "-tp", str(others / "target"), "-gp", str(others / "golden")]
    for option in ("--suggest-mapping", "--map-parameters"):
        yield f"compare {option}", [*renamed, "-o", "rows", option], "yaml"
    yield "ckpt_compare -o", [*checkpoints, "-o"], "json"
    for ending in ("csv", "xlsx", "json", "jsonl"):
        yield f"ckpt_compare --details .{ending}", [*checkpoints, "--overwrite", "-o", "result.json", "--details"], ending
    yield "config_check -d -o", ["config_check", "-d", "train.sh", "--env-table-only", "-o"], "zip"
    yield "config_check -c of checkpoints -o", ["config_check", "-c", *checkpoints[1:], "-o"], "json"
    yield "monitor report -o", [*words_of("monitor report", data), "-o"], "html"
    for ending in ("csv", "xlsx", "json", "jsonl"):
        yield f"monitor compare -o .{ending}", [*words_of("monitor compare", data), "-o"], ending
    for ending in ("csv", "xlsx", "json", "jsonl"):
        yield f"parse --summary .{ending}", [*words_of("parse", data), "-o", "parsed", "--summary"], ending


def snapshot(folder):
    """Everything below the folder: kinds and names, and what files and links hold."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        held = os.readlink(path) if stat.S_ISLNK(mode) else path.read_bytes() if stat.S_ISREG(mode) else None
        found[str(path.relative_to(folder))] = (stat.S_IFMT(mode), held)
    return found


def put(place, kind):
    """Something at the place. What is not to change is beside it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    target = place.parent / "target"
    target.write_bytes(SECRET)
    if kind == "a file":
        place.write_bytes(SECRET)
    elif kind == "a link":
        place.symlink_to(target)
    elif kind == "a link to a link":
        (place.parent / "between").symlink_to("target")
        place.symlink_to("between")
    elif kind == "a dangling link":
        place.symlink_to(place.parent / "nowhere")
    elif kind == "a folder":
        place.mkdir()
    elif kind == "a link to a folder":
        (place.parent / "folder").mkdir()
        place.symlink_to("folder")
    elif kind == "a pipe":
        os.mkfifo(place)
    elif kind == "a link to a device":
        place.symlink_to("/dev/full")


def run(msprobe, scratch, words):
    (scratch / "train.sh").write_text("python train.py --lr 1e-4\n", encoding="ascii")
    return harness.run(msprobe, words, scratch)


def run_at_once(msprobe, scratch, words):
    """Three times."""
    runs = [subprocess.Popen([msprobe, *words], cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             env=harness.environment(msprobe, scratch)) for _ in range(3)]
    for one in runs:
        errors = one.communicate(timeout=harness.TIME_LIMIT_S)[1]
        harness.check(one.returncode == 0, errors)


def refused(msprobe, scratch, words, *mentioned):
    """One line, status 2, and all is as before."""
    (scratch / "train.sh").write_text("python train.py --lr 1e-4\n", encoding="ascii")
    before = snapshot(scratch / "work")
    harness.check_refused(harness.run(msprobe, words, scratch), *mentioned)
    harness.check_equal("what lies there", snapshot(scratch / "work"), before)


def tests_of_file(msprobe, words, ending, thorough):
    """(what lies at the place, its test)"""
    overwriting = [*words[:-1], "--overwrite", words[-1]] if "--overwrite" not in words else words
    plain = [word for word in words if word != "--overwrite"]

    formats = {"compare": ["--format", "csv"], "monitor compare": ["--format", "csv"]}
    named = [*formats.get(words[0], []), *formats.get(" ".join(words[:2]), [])]
    # Elsewhere the name gives the format.
    takes_devices = words[-1] not in ("--details", "--summary") and (named or ending in ("json", "yaml", "html"))

    def there(scratch, kind):
        place = scratch / "work" / f"out.{ending}"
        put(place, kind)
        refused(msprobe, scratch, [*plain, str(place)], "already exists", place.name)
        before = snapshot(scratch / "work")
        result = run(msprobe, scratch, [*overwriting, str(place)])
        harness.check(result.returncode == 0, f"{result.returncode}: {result.stderr}")
        after = snapshot(scratch / "work")
        harness.check(stat.S_ISREG(place.lstat().st_mode), "it is no file")
        harness.check(place.read_bytes() not in (SECRET, b""), "it is not replaced")
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        harness.check_equal("what changed", changed, {place.name})

    def no_file(scratch, kind):
        place = scratch / "work" / f"out.{ending}"
        put(place, kind)
        for way in (plain, overwriting):
            refused(msprobe, scratch, [*way, str(place)], place.name)

    def elsewhere(scratch, _kind):
        """Below a file or a link to one; a device, and what has its name."""
        put(scratch / "work" / "file", "a file")
        put(scratch / "work" / "link", "a link")
        for path in (scratch / "work" / "file" / f"out.{ending}", scratch / "work" / "link" / f"out.{ending}",
                     f"/proc/out.{ending}"):
            for way in (plain, overwriting):
                refused(msprobe, scratch, [*way, str(path)], str(path).rsplit("/", 1)[0])

    def devices(scratch, _kind):
        (scratch / "work").mkdir()
        for device in ("/dev/full", "/dev/stdout", "/proc/self/fd/1"):
            before = os.lstat(device).st_ino if device.startswith("/dev") else None
            for way in (plain, overwriting):
                refused(msprobe, scratch, [*way[:-1], *named, way[-1], device], device)
                with open(scratch / "shown", "wb") as shown:
                    environment = harness.environment(msprobe, scratch)
                    done = subprocess.run([msprobe, *way[:-1], *named, way[-1], device], cwd=scratch, stdout=shown,
                                          stderr=subprocess.PIPE, env=environment, check=False)
                harness.check(done.returncode == 2, f"{device}: {done.stderr}")
            harness.check(before is None or os.lstat(device).st_ino == before, f"{device} is another file")

    def linked_folder(scratch, _kind):
        (scratch / "work" / "real").mkdir(parents=True)
        (scratch / "work" / "link").symlink_to("real")
        result = run(msprobe, scratch, [*plain, str(scratch / "work" / "link" / f"out.{ending}")])
        harness.check(result.returncode == 0, result.stderr)
        harness.check((scratch / "work" / "real" / f"out.{ending}").is_file(), "the file is elsewhere")
        harness.check((scratch / "work" / "link").is_symlink(), "the link to the folder is gone")

    for kind in ("a file", "a link", "a dangling link"):
        yield kind, there
    if not thorough:
        return
    yield "a link to a link", there
    for kind in ("a folder", "a link to a folder", "a pipe", "a link to a device"):
        yield kind, no_file
    yield "below no folder", elsewhere
    if takes_devices:
        yield "a device", devices
    yield "below a link to a folder", linked_folder


def tests_of_folder(msprobe, words, option):
    def twice_at_once(scratch, _kind):
        """In the same second, or at least none after another."""
        run_at_once(msprobe, scratch, [*words, option, "out"])
        names = [str(path.relative_to(scratch)) for path in (scratch / "out").rglob("*") if path.is_file()]
        timed = [name for name in names if TIMED.search(name) and "tfevents" not in name]
        kinds = [TIMED.sub("TIME", name) for name in timed]
        harness.check(kinds, "no result has a time")
        harness.check_equal("results of three runs", {kind: kinds.count(kind) for kind in kinds},
                            dict.fromkeys(kinds, 3))

    def links_inside(scratch, _kind):
        """Where an earlier run has left files, links lie."""
        out = scratch / "work" / "out"
        first = run(msprobe, scratch, [*words, option, str(out)])
        harness.check(first.returncode == 0, first.stderr)
        target = scratch / "work" / "target"
        target.write_bytes(SECRET)
        places = [path for path in out.rglob("*") if path.is_file() and not TIMED.search(str(path.relative_to(out)))]
        for number, path in enumerate(places):
            path.unlink()
            path.symlink_to(target if number % 2 else scratch / "work" / "nowhere")
        result = run(msprobe, scratch, [*words, option, str(out)])
        harness.check(result.returncode == 0, result.stderr)
        harness.check_equal("what the links led to", target.read_bytes(), SECRET)
        harness.check(not (scratch / "work" / "nowhere").exists(), "written where a dangling link led")
        for path in places:
            harness.check(path.is_file() and not path.is_symlink(), f"{path} is still a link")

    def no_folder(scratch, kind):
        place = scratch / "work" / "out"
        put(place, kind)
        refused(msprobe, scratch, [*words, option, str(place)], "out")

    def elsewhere(scratch, _kind):
        put(scratch / "work" / "file", "a file")
        put(scratch / "work" / "link", "a link")
        for path in (scratch / "work" / "file" / "out", scratch / "work" / "link" / "out", "/proc/out", "/dev/full"):
            refused(msprobe, scratch, [*words, option, str(path)], str(path).removesuffix("/out"))

    def linked_folder(scratch, _kind):
        put(scratch / "work" / "out", "a link to a folder")
        result = run(msprobe, scratch, [*words, option, str(scratch / "work" / "out")])
        harness.check(result.returncode == 0, result.stderr)
        harness.check((scratch / "work" / "out").is_symlink(), "the link to the folder is gone")
        harness.check(any(path.is_file() for path in (scratch / "work" / "folder").rglob("*")), "nothing is written")

    def beside_msprobe(scratch, _kind):
        (scratch / "work" / "msprobe").mkdir(parents=True)
        result = run(msprobe, scratch, [*words, option, str(scratch / "work" / "out")])
        harness.check(result.returncode == 0, result.stderr)

    yield "links where its files lie", links_inside
    yield "beside a folder msprobe", beside_msprobe
    for kind in ("a file", "a link", "a dangling link", "a pipe", "a link to a device"):
        yield kind, no_folder
    yield "below no folder", elsewhere
    yield "a link to a folder", linked_folder
    if words[0] in NAMED_BY_TIME:
        yield "three runs at once", twice_at_once


def make_tests(msprobe, data):
    program = json.loads(harness.run(msprobe, ["__options"], ".").stdout)
    files = list(named_files(data))
    tests = []

    def add(name, kind, function):
        tests.append((f"{name}: {kind}", lambda scratch: function(scratch, kind)))

    seen = set()
    for name, words, ending in files:
        thorough = name.split(" .")[0] not in seen
        seen.add(name.split(" .")[0])
        for kind, function in tests_of_file(msprobe, words, ending, thorough):
            add(name, kind, function)
    for entry in program["commands"]:
        command = entry["name"]
        names = {name for option in entry["options"] for name in option["names"]}
        options = FOLDER_OPTIONS & names
        if not options:
            harness.check(command in WITHOUT_FILES, f"say here which option of '{command}' names its results")
            continue
        takes_file = any(name.startswith(command + " ") and " -o" in name for name, _, _ in files)
        if command in ELSEWHERE or (takes_file and command != "config_check"):
            continue
        for kind, function in tests_of_folder(msprobe, words_of(command, data), options.pop()):
            add(command, kind, function)

    def folders_of_their_own(scratch, _kind):
        """csv2tb without -o makes a folder in that of its input."""
        words = words_of("monitor csv2tb", data)
        at = words.index("-d") + 1
        shutil.copytree(words[at], scratch / "in")
        words[at] = "in"
        run_at_once(msprobe, scratch, words)
        made = [sorted(str(path.relative_to(folder)).rpartition(".tfevents")[0] for path in folder.rglob("events*"))
                for folder in (scratch / "in").glob("*-csv2tensorboard_by_step")]
        harness.check_equal("folders", len(made), 3)
        harness.check(made[0] and made[0] == made[1] == made[2], f"files: {made}")

    add("monitor csv2tb", "three runs at once without -o", folders_of_their_own)
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
