#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each command with one failing call of the system's: it says so with status 2 and one line, or its result is right.

fault_shim.cpp, preloaded, lets the n-th call of a kind fail, or all from the n-th on. A run may end in two ways: with
the status, the output and the files of a run without a fault, or with status 2, a line that gives the reason, and no
file that is half or has a temporary name.

usage: faults.py MSPROBE SHIM DATA
MSPROBE_TEST_FAULTS=N tries N places a kind instead of some 20, and all of them below N.
"""

import concurrent.futures
import os
import pathlib
import re
import resource
import sys
import tempfile

import harness
import precheck_runners

# kind: what the line says. The others of memory are of a thread that could not be started, and of the system's own calls.
MEMORY = ("not enough memory", "pthread_create has failed: Resource temporarily unavailable", "Cannot allocate memory")
KINDS = {
    "malloc": MEMORY,
    "mmap": MEMORY,
    "read": ("Input/output error",),
    "readdir": ("Input/output error",),
    "write": ("No space left on device",),
    "open": ("Too many open files",),
    "rename": ("Permission denied",),
}
# Commands that go on without one of their inputs, and what may keep them from reading it.
MANY_INPUTS = {
    "compare into one file": ("read", "open"),
    "compare of tensors": ("read", "open", "malloc"),
    "compare as a gate": ("open", "malloc"),
    "merge_result": ("read", "open"),
    "nan_analyze": ("read", "open"),
    "overflow_check": ("read", "open"),
    "ckpt_compare": ("read", "open"),
    "parse": ("read", "readdir", "open", "malloc", "write", "rename"),
    "inspect": ("read", "open", "readdir", "malloc"),
    "config_check -c": ("read", "malloc"),
    "config_check -d": ("read", "open", "readdir"),
}
# Both sides are one: it ends with 0, unless something could not be read, be it for the second time.
GATES = {"compare as a gate": ("read",)}
PLACES = int(os.environ.get("MSPROBE_TEST_FAULTS", "0"))


def cases(data):
    """name: arguments, with inputs small enough for thousands of runs."""
    golden = harness.data(data / "golden", "anomaly", "ckpt", "compare", "config_check", "parse", "prechecks", "visualize")
    compare = golden / "compare"
    packs = golden / "config_check" / "packs"
    checkpoints = golden / "ckpt" / "checkpoints"
    anomaly = golden / "anomaly" / "cases" / "a02_before_comm_one_rank" / "step0"
    merge = compare / "merge_result"
    rules = compare / "tensor_rules" / "target"
    precision = golden / "prechecks" / "precision_compare" / "in"
    pair = lambda name: ["-tp", compare / name / "target", "-gp", compare / name / "golden"]
    return {
        "compare": ["compare", *pair("stats_pairs"), "-o", "out", "--format", "csv,xlsx,html"],
        "compare into one file": ["compare", *pair("rank_pairing"), "--format", "csv", "--output-file", "all.csv"],
        "compare of tensors": ["compare", *pair("tensor_rules"), "-o", "out", "--format", "csv", "--replay", "all"],
        "compare as a gate": ["compare", "-tp", rules, "-gp", rules, "-o", "out", "--format", "csv", "--replay", "all",
                              "--fail-on", "culprit"],
        "merge_result": ["merge_result", "-i", merge / "input", "-o", "out", "-config", merge / "config_all.yaml"],
        "nan_analyze": ["nan_analyze", "-i", anomaly, "-o", "out"],
        "overflow_check": ["overflow_check", "-i", anomaly, "-o", "out"],
        "graph_visualize": ["graph_visualize", "-tp", golden / "visualize" / "cases" / "tree" / "target", "-o", "out", "-oc"],
        "ckpt_compare": ["ckpt_compare", checkpoints / "tp1pp1", checkpoints / "tp2pp2", "-o", "out.json"],
        "api_precision_compare": ["api_precision_compare", "-npu", precision / "duplicate_npu.csv", "-gpu",
                                  precision / "duplicate_gpu.csv", "-o", "out", "--format", "csv,xlsx,json"],
        "parse": ["parse", "-d", golden / "parse" / "atb" / "in" / "ok", "-o", "out"],
        "inspect": ["inspect", compare / "stats_pairs" / "target", checkpoints / "tp1pp1", "--json"],
        "config_check -c": ["config_check", "-c", packs / "bench.zip", packs / "cmp.zip", "-o", "out"],
        "config_check -d": ["config_check", "-d", "train.sh", "-o", "pack.zip", "--python", "venv/bin/python3", "--env-table-only"],
    }


def places(count):
    """The numbers of the calls that fail: the first ones, where the command line is read, and some of the others."""
    if PLACES:
        return sorted({*range(1, min(count, PLACES) + 1), *(1 + count * i // PLACES for i in range(PLACES))})
    dense = set(range(1, min(count, 16) + 1))
    wide = {1 + (count - 1) * i // 11 for i in range(12)} if count else set()
    return sorted(dense | wide)


def ends(count):
    """(place, whether that call fails or all from it on): both ways where all are tried, else the second at some."""
    tried = places(count)
    return [(number, "once") for number in tried] + [(number, "on") for number in tried[::1 if PLACES else 3]]


def make_training(folder):
    """A launch script, and a file in place of an interpreter, with two packages."""
    (folder / "train.sh").write_text("python train.py --lr 1e-4\n", encoding="ascii")
    python = folder / "venv" / "bin" / "python3"
    if not python.exists():
        python.parent.mkdir(parents=True)
        python.write_text("", encoding="ascii")
        python.chmod(0o755)
        for name in ("one", "two"):
            packages = folder / "venv" / "lib" / "python3.11" / "site-packages"
            about = packages / f"{name}-1.0.dist-info" / "METADATA"
            about.parent.mkdir(parents=True)
            about.write_text(f"Name: {name}\nVersion: 1.0\n", encoding="ascii")


def untimed(text):
    """The time in the names of results."""
    return re.sub(r"(?<=_)\d{14}(?=[_.])", "TIME", text)


class Commands:
    def __init__(self, msprobe, shim, data):
        self.msprobe = msprobe
        self.shim = shim
        self.cases = {name: [str(word) for word in words] for name, words in cases(data).items()}

    def run(self, name, scratch, fault, **more):
        """A run and the files that it leaves; `fault` as the shim wants it."""
        if name.endswith("-d"):
            make_training(scratch)
        variables = {"LD_PRELOAD": self.shim, "MSPROBE_TEST_FAULT": fault, "TMPDIR": str(scratch), **more}
        result = harness.run(self.msprobe, [*self.cases[name], "-j", "2"], scratch, env=variables)
        result.stdout = untimed(result.stdout)
        return result, files_in(scratch)

    def right(self, name, kind):
        """A run without a fault, and how many calls of the kind it has."""
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            folder = pathlib.Path(scratch) / "work"
            folder.mkdir()
            count = pathlib.Path(scratch) / "count"
            result, files = self.run(name, folder, f"{kind}:0:{count}")
            harness.check((result.returncode in (0, 1) and files) or "inspect" in name, result.stderr)
            return (result.returncode, result.stdout, files), int(count.read_text(encoding="ascii"))

    def fail(self, name, kind, number, how, right):
        """Says what is wrong with the end of a run with a fault; empty: nothing."""
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            result, files = self.run(name, pathlib.Path(scratch), f"{kind}:{number}:{how}")
        said = f"{kind} {number} {how}: status {result.returncode}, {shortened(result.stderr)}"
        if any("msprobe-" in path for path in files):
            return f"{said}; temporary files stay: {sorted(files)}"
        if kind in GATES.get(name, ()):
            return "" if result.returncode in (1, 2) and tells(kind, result.stdout + result.stderr) else f"{said}; it passes"
        if (result.returncode, result.stdout, files) == right:
            return ""
        # If one of many inputs fails, the reason is in the place of its result, and the other results are there.
        contents = [content.decode("utf-8", "replace") for content in files.values()]
        told = any(tells(kind, text) for text in (result.stdout, result.stderr, *contents))
        statuses = (0, 1, 2) if name in GATES else (2, right[0])
        if kind in MANY_INPUTS.get(name, ()) and result.returncode in statuses:
            return "" if told else f"{said}; no reason is given"
        if result.returncode != 2:
            return f"{said}; another result: {[path for path in files if files[path] != right[2].get(path)]}"
        errors = [line for line in result.stderr.splitlines() if line.startswith("msprobe: error: ")]
        if len(errors) != 1 or not tells(kind, errors[0]):
            return said
        half = [path for path, content in files.items() if right[2].get(path) != content]
        return f"{said}; not whole: {half}" if half else ""

    def limit(self, name, size, right):
        """Says what is wrong with the end of a run whose address space is limited to this size; empty: nothing."""
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            folder = pathlib.Path(scratch)
            if name.endswith("-d"):
                make_training(folder)
            result = harness.run(
                self.msprobe,
                [*self.cases[name], "-j", "2"],
                folder,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
            )
            files = files_in(folder)
        if result.returncode == 127 or (result.returncode, untimed(result.stdout), files) == right:
            return ""  # with too little it is not even loaded
        said = f"{size} bytes: status {result.returncode}, {shortened(result.stderr)}"
        errors = [line for line in result.stderr.splitlines() if line.startswith("msprobe: error: ")]
        if result.returncode != 2 or len(errors) > 1 or not tells("malloc", result.stdout + result.stderr):
            return said
        return f"{said}; temporary files stay" if any("msprobe-" in path for path in files) else ""

    def kill(self, name, kind, number, named, right):
        """The same of a run that is killed, and of the next one in its place."""
        more = {"MSPROBE_TEST_NAMED": "1"} if named else {}
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            result, files = self.run(name, pathlib.Path(scratch), f"{kind}:{number}:kill", **more)
            said = f"{kind} {number} kill{' named' if named else ''}: status {result.returncode}"
            half = [path for path, content in files.items() if right[2].get(path, content) != content]
            if result.returncode not in (right[0], -9) or half:
                return f"{said}; not whole: {half}"
            if not named and any("msprobe-" in path for path in files):
                return f"{said}; temporary files stay: {sorted(files)}"
            for path in pathlib.Path(scratch).rglob("out*/[!.]*"):
                if path.is_file():
                    path.unlink()
            for result_file in ("all.csv", "out.json", "pack.zip"):  # without --overwrite they are not replaced
                pathlib.Path(scratch, result_file).unlink(missing_ok=True)
            result, files = self.run(name, pathlib.Path(scratch), f"{kind}:0:/dev/null", **more)
        same = (result.returncode, result.stdout, files) == right
        return "" if same else f"{said}; the next one: {result.returncode}, {sorted(files)} {shortened(result.stderr)}"


class GrowingFiles:
    """acc_check writes what is finished at once: a full disk leaves whole operations, from which it goes on."""

    NAMES = [f"n{i}" for i in range(6)]

    def __init__(self, msprobe, shim):
        self.msprobe = msprobe
        self.shim = shim

    @staticmethod
    def is_told(row):
        return row[1] == "SKIP" and (tells("write", row[-1]) or row[-1].startswith("the runner "))

    def run(self, scratch, fault, *options):
        variables = {"LD_PRELOAD": self.shim, "MSPROBE_TEST_FAULT": fault, "TMPDIR": str(scratch)} if fault else {}
        return harness.run(self.msprobe, precheck_runners.words_of(scratch, *options), scratch, env=variables)

    def right(self):
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            folder = self.prepare(scratch)
            result = self.run(folder, f"write:0:{folder / 'count'}")
            harness.check_equal("a run without a fault", result.returncode, 0)
            return precheck_runners.results_of(folder)[1], int((folder / "count").read_text(encoding="ascii"))

    def prepare(self, scratch):
        folder = pathlib.Path(scratch)
        precheck_runners.write_dump(folder, self.NAMES)
        precheck_runners.write_runner(folder, faults={"x": "pass"}, python=f"/usr/bin/env -S -u LD_PRELOAD {sys.executable}")
        return folder

    def fail(self, number, how, right):
        """Says what is wrong with the end of a run on a disk full at the n-th write, or with going on; empty: nothing."""
        with tempfile.TemporaryDirectory(prefix="msprobe-fault-") as scratch:
            folder = self.prepare(scratch)
            result = self.run(folder, f"write:{number}:{how}")
            said = f"write {number} {how}: status {result.returncode}, {shortened(result.stderr)}"
            results = list((folder / "out").glob("accuracy_checking_result_*.csv"))
            rows = precheck_runners.results_of(folder)[1] if results else []
            if result.returncode == 0:
                # The row of an operation whose arguments found no room says so, or that its runner could not be asked.
                wrong = [row for row, same in zip(rows, right) if row != same and not self.is_told(row)]
                return f"{said}; rows: {wrong}" if wrong or len(rows) != len(right) else ""
            errors = [line for line in result.stderr.splitlines() if line.startswith("msprobe: error: ")]
            if result.returncode != 2 or len(errors) != 1 or not tells("write", errors[0]):
                return said
            if not results:
                return ""
            if [row[0] for row in rows] != [row[0] for row in right[:len(rows)]]:
                return f"{said}; not whole: {rows}"
            result = self.run(folder, None, "-csv_path", str(results[0]))
            rows = [row for row in precheck_runners.results_of(folder)[1] if not self.is_told(row)]
            expected = [row for row in right if row[0] in {row[0] for row in rows}]
            if result.returncode != 0 or rows != expected or len(rows) < len(right) - number:
                return f"{said}; going on: {result.returncode} {rows} {shortened(result.stderr)}"
        return ""


def tells(kind, text):
    return any(reason in text for reason in KINDS[kind])


def shortened(text):
    return repr(text if len(text) < 300 else text[:150] + " ... " + text[-150:])


def files_in(folder):
    """The files in the folder by name, without the times in their names."""
    return {
        re.sub(r"\d{14,}", "TIME", str(path.relative_to(folder))): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "venv" not in path.parts
    }


def make_tests(msprobe, shim, data):
    commands = Commands(msprobe, str(pathlib.Path(shim).resolve()), pathlib.Path(data).resolve())

    def together(work):
        """Runs (function, arguments) pairs at the same time; their complaints are this test's."""
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [text for text in pool.map(lambda one: one[0](*one[1:]), work) if text]
        harness.check(not wrong, "\n".join([f"{len(wrong)} of {len(work)} ends are wrong", *wrong[:20]]))

    def failing(name):
        work = []
        for kind in KINDS:
            right, count = commands.right(name, kind)
            work += [(commands.fail, name, kind, number, how, right) for number, how in ends(count)]
        together(work)

    def killed(name):
        work = []
        for kind in ("write", "rename"):
            right, count = commands.right(name, kind)
            for number in places(count)[::4]:
                work += [(commands.kill, name, kind, number, named, right) for named in (False, True)]
        together(work)

    def limited(name):
        right, _ = commands.right(name, "rename")
        together([(commands.limit, name, size << 20, right) for size in (16, 24, 32, 48, 64, 96, 128, 256)])

    tests = []
    for name in commands.cases:
        tests.append((f"{name}: little memory", lambda scratch, name=name: limited(name)))
        tests.append((f"{name}: a call fails", lambda scratch, name=name: failing(name)))
        if name != "inspect":  # it writes no file
            tests.append((f"{name}: killed", lambda scratch, name=name: killed(name)))

    def full_disk(_scratch):
        growing = GrowingFiles(msprobe, commands.shim)
        right, count = growing.right()
        together([(growing.fail, number, how, right) for number, how in ends(count)])

    tests.append(("acc_check: a full disk, and going on", full_disk))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
