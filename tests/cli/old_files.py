#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of earlier versions are read by each command that reads them; those of a later, unknown one are refused in one line.

usage: old_files.py MSPROBE RELEASED     (tests/data/released)
"""

import shutil
import sqlite3
import sys
import zipfile

import harness

PAIR = ("target", "golden")


def one(folder, pattern):
    found = sorted(folder.glob(pattern))
    harness.check_equal(f"files like {pattern}", len(found), 1)
    return str(found[0])


def readers(old):
    """name: (command line in a folder that has results in out, status, text of its answer)"""
    pair = lambda kind: ["-tp", str(old / kind / "target"), "-gp", str(old / kind / "golden")]
    dump = old / "tensor" / "golden" / "step1" / "rank0" / "dump.json"
    monitors = [str(old / "monitor" / side) for side in PAIR]
    return {
        "compare of statistics": (["compare", *pair("statistics"), "-o", "out", "--fail-on", "culprit"], 1, "Tensor.__mul__.0.forward"),
        "compare of tensors": (["compare", *pair("tensor"), "-o", "out", "--fail-on", "culprit"], 1, "linear"),
        "compare of saved values": (["compare", *pair("debug"), "-o", "out"], 0, "6 rows: 0 error, 0 warning, 6 pass"),
        "compare of single saves": (["compare", *pair("single"), "-o", "out"], 0, "out/loss.xlsx"),
        "compare with its own mapping": (["compare", *pair("statistics"), "-dm", str(old / "parameters.yaml"), "-o", "out"], 0, "137 pass"),
        "compare with unstable calls": (["compare", *pair("statistics"), "--noise-floor", str(old / "noise" / "golden"), "-o", "out"], 0,
                                        "1 warning, 137 pass"),
        "nan_analyze": (["nan_analyze", "-i", str(old / "statistics" / "golden"), "-o", "out"], 0, "no origin of NaN or Inf found"),
        "graph_visualize": (["graph_visualize", *pair("statistics"), "-o", "out"], 0, "Tensor.__mul__.0.forward: argument input.1 is 1.01"),
        "op_generate": (["op_generate", "-api_info", str(dump), "--api", "Functional.relu.0", "-o", "out"], 0, "forward and backward, 2 tensors"),
        "data2db": (["data2db", "--data", str(old / "statistics" / "golden"), "--db", "out"], 0, "124 rows"),
        "inspect": (["inspect", str(old / "statistics" / "golden")], 0, "24, 62 tensors"),
        "grad_compare": (["grad_compare", *(str(old / "grad_probe" / side) for side in PAIR), "-o", "out"], 0,
                         "gradient signs of 1 rank over 2 steps: all are equal"),
        "api_precision_compare": (["api_precision_compare", "-npu", one(old, "checked/target/*details*.csv"), "-gpu",
                                   one(old, "checked/golden/*details*.csv"), "-o", "out"], 0, "3 operations: 3 pass"),
        "acc_check that goes on": (["acc_check", "-api_info", str(dump), "-csv_path", "out/accuracy_checking_result_20260101000000.csv",
                                    "--python", sys.executable], 0, "3 were done in an earlier run"),
        "merge_result": (["merge_result", "-i", "out/step1", "-o", "merged", "-config", "config.yaml"], 0, "merged"),
        "monitor analyze": (["monitor", "analyze", "-d", str(old / "monitor" / "target" / "anomaly_detected"), "-o", "out"], 0,
                            "('0:2.weight/rank0/acc_grad', 'mean') at step 1"),
        "monitor compare": (["monitor", "compare", *monitors], 0, "grad_unreduced  1           9 of 16"),
        "monitor report": (["monitor", "report", *monitors, "-o", "out/report.html"], 0, "out/report.html"),
        "monitor csv2tb": (["monitor", "csv2tb", "-d", monitors[0], "-o", "out"], 0, "256 values in 4 event files"),
        "monitor csv2db": (["monitor", "csv2db", "--data", monitors[0], "--db", "out"], 0, "64 rows"),
        "config_check of recorded packs": (["config_check", "-c", *(str(old / "packs" / f"{side}.zip") for side in PAIR), "-o", "out"], 0,
                                           "random          pass"),
        "config_check of packs of scripts": (["config_check", "-c", *(str(old / "packs" / f"launch_{side}.zip") for side in PAIR), "-o", "out",
                                              "--fail-on", "error"], 1, "out/result.xlsx"),
    }


def prepare(name, old, scratch):
    """Makes the files that a command changes, or reads under other names."""
    out = scratch / "out"
    if name == "merge_result":
        (out / "step1").mkdir(parents=True)
        for rank in range(2):  # of two ranks, which it merges
            shutil.copy(one(old, "tables/step1/*.xlsx"), out / "step1" / f"compare_result_rank{rank}_20260101000000.xlsx")
        (scratch / "config.yaml").write_text("api:\n  - Functional.linear.0.forward\ncompare_index:\n  - Max diff\n", encoding="ascii")
    elif name.startswith("acc_check"):
        out.mkdir()
        for path in (old / "checked" / "golden").iterdir():
            shutil.copy(path, out / (path.name.rsplit("_", 1)[0] + "_20260101000000.csv"))


# Commands of the dump whose header is of a later format.
OF_DUMPS = ("compare of statistics", "compare of tensors", "compare of saved values", "nan_analyze", "graph_visualize", "op_generate",
            "data2db", "inspect", "acc_check that goes on")


def make_tests(msprobe, released):
    old = harness.data(released, "format1") / "format1"
    commands = readers(old)
    tests = []

    def read(scratch, name):
        words, status, text = commands[name]
        prepare(name, old, scratch)
        result = harness.run(msprobe, words, scratch)
        harness.check_equal("exit status", result.returncode, status)
        harness.check(text in result.stdout + result.stderr, f"'{text}' is not in: {result.stdout}{result.stderr}")

    def refused(result, *mentioned):
        harness.check_equal("exit status", result.returncode, 2)
        # `inspect` reports in its answer what it cannot read.
        errors = [line for line in (result.stdout + result.stderr).splitlines() if "a later msprobe" in line or "its format" in line]
        harness.check(len(errors) == 1, f"{result.stdout}{result.stderr}")
        for text in mentioned:
            harness.check(text in errors[0], f"'{text}' is not in: {errors[0]}")

    def later_dump(scratch, name, version):
        """Only the first dump of the command line is; of several files all."""
        prepare(name, old, scratch)
        words = list(commands[name][0])
        at = next(i for i, word in enumerate(words) if word.startswith(str(old)))
        source = words[at]
        place = scratch / "later"
        if source.endswith(".json"):
            place.mkdir()
            shutil.copy(source, place / "dump.json")
            words[at] = str(place / "dump.json")
        else:
            shutil.copytree(source, place)
            shutil.rmtree(place / "step0", ignore_errors=True)
            words[at] = str(place)
        for path in [*place.rglob("dump.json"), *place.rglob("debug.json")]:
            text = path.read_text(encoding="utf-8")
            harness.check('"format": 1,' in text, f"{path} has no format")
            path.write_text(text.replace('"format": 1,', f'"format": {version},'), encoding="utf-8")
        refused(harness.run(msprobe, words, scratch), "a later msprobe wrote it, in format", str(version)[:20], ".json")

    def later_pack(scratch, version):
        paths = [scratch / f"{side}.zip" for side in PAIR]
        for side, path in zip(PAIR, paths):
            shutil.copy(old / "packs" / f"{side}.zip", path)
        with zipfile.ZipFile(paths[0], "a") as archive:
            harness.check_equal("comment", archive.comment, b"msprobe pack 1")
            archive.comment = f"msprobe pack {version}".encode()
        refused(harness.run(msprobe, ["config_check", "-c", *map(str, paths), "-o", "out"], scratch), "target.zip",
                "a later msprobe wrote it, in format" if version.isdigit() else f"its format '{version}' is unknown to")
        harness.check(not (scratch / "out").exists(), "results are written")

    def other_comment(scratch):
        """A pack of the Python tool has no comment, or one that a user gave it."""
        for comment in (b"", b"of Monday"):
            path = scratch / "pack.zip"
            shutil.copy(old / "packs" / "target.zip", path)
            with zipfile.ZipFile(path, "a") as archive:
                archive.comment = comment
            result = harness.run(msprobe, ["config_check", "-c", str(path), str(old / "packs" / "golden.zip"), "-o", "-"], scratch)
            harness.check_equal(result.stderr, result.returncode, 0)

    def databases(scratch):
        for name in ("graph_visualize", "data2db", "monitor csv2db"):
            harness.check_equal(name, harness.run(msprobe, commands[name][0], scratch).returncode, 0)
        paths = sorted((scratch / "out").glob("*.db"))
        harness.check_equal("databases", len(paths), 3)
        for path in paths:
            with sqlite3.connect(path) as database:
                harness.check_equal(path.name, database.execute("PRAGMA user_version").fetchone(), (1,))

    for name in commands:
        tests.append((name, lambda scratch, name=name: read(scratch, name)))
    for name in OF_DUMPS:
        tests.append((f"{name}: a later format", lambda scratch, name=name: later_dump(scratch, name, 2)))
    tests.append(("a format that is no number of ours", lambda scratch: later_dump(scratch, "inspect", "1" * 30)))
    for version in ("2", "1.1", "9" * 30, ""):
        tests.append((f"a pack of format '{version}'", lambda scratch, version=version: later_pack(scratch, version)))
    tests.append(("packs without a version", other_comment))
    tests.append(("the version of databases", databases))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
