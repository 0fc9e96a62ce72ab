#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The culprit that compare names: on recorded pairs with a planted fault, and on pairs that differ in kernels alone.

usage: culprit.py MSPROBE DATA_FOLDER SCHEMA

DATA_FOLDER is tests/data/diagnosis.
"""

import json
import os
import pathlib
import re
import shutil

from harness import check, check_equal, data, main, run


def number(label):
    return int(re.search(r"\d+$", label)[0])


def findings_of(msprobe, folder, case, task, scratch, *options):
    options = options or ("--fail-on", "culprit")
    runs = case["runs"]
    done = run(msprobe, ["compare", "-tp", str(folder / runs["target"] / task), "-gp", str(folder / runs["golden"] / task),
                         "--format", "jsonl", "-o", "-", *options], scratch)
    objects = [json.loads(line) for line in done.stdout.splitlines() if not line.startswith('{"kind": "row"')]
    return done, objects


def is_named(finding, expect):
    """The guilty entry or the module directly around it, at its step and rank."""
    named = finding["entry"] in expect["target"] or finding["golden_entry"] in expect["golden"]
    named = named or finding["entry"] in expect["golden"]
    return named and number(finding["step"]) in expect["steps"] and number(finding["rank"]) in expect["ranks"]


def check_schema(objects, schema):
    evidence, stretch, none, meeting, note = schema["oneOf"]
    for one in objects:
        form = {"stretch": stretch, "no_culprit": none, "meeting_points": meeting, "note": note}.get(one["kind"], evidence)
        check_equal("keys", sorted(one), sorted(form["required"]))
        check_equal("keys of the schema", sorted(form["properties"]), sorted(form["required"]))
        if form is evidence:
            check(one["kind"] in form["properties"]["kind"]["enum"], f"unknown kind {one['kind']}")


def make_tests(msprobe, folder, schema):
    cases = {path.stem: json.loads(path.read_text()) for path in sorted(pathlib.Path(folder, "cases").glob("*.json"))}
    schema = json.loads(pathlib.Path(schema).read_text())
    folder = data(folder, "runs")

    def of_case(case, task):
        def test(scratch):
            done, objects = findings_of(msprobe, folder, case, task, scratch)
            check(objects, done.stderr)
            check_schema(objects, schema)
            if case["benign"]:
                check_equal("kind", objects[0]["kind"], "no_culprit")
                check_equal("status", done.returncode, 0)  # hints do not count
                check(done.stderr.startswith("no culprit: "), done.stderr)
                return
            check(is_named(objects[0], case["expect"]), f"{objects[0]}, expected {case['expect']}")
            check(objects[0]["confidence"] != "hint", "only a hint")
            check_equal("status", done.returncode, 1)
            first = done.stderr.splitlines()[0]
            check(first.startswith("culprit: ") and f" {objects[0]['entry']}" in first, done.stderr)

        return test

    def noise_floor(scratch):
        # Where golden's noise is as large as the fault, the fault does not count as evidence.
        case = cases["tiny_half-softmax_elements"]
        target = str(folder / case["runs"]["target"] / "statistics")
        _, plain = findings_of(msprobe, folder, case, "statistics", scratch)
        done, objects = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", target)
        check(objects[0]["kind"] == "no_culprit" or objects[0]["entry"] != plain[0]["entry"], f"{objects[0]}")
        done, _ = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", "nowhere")
        check_equal("status", done.returncode, 2)
        check("nowhere" in done.stderr, done.stderr)

    def noise_of_calls(scratch):
        # free_benchmark found the place unstable, by as much as the fault, or by less, or another place.
        case = cases["tiny_half-softmax_elements"]
        golden = folder / case["runs"]["golden"] / "statistics"
        _, plain = findings_of(msprobe, folder, case, "statistics", scratch)
        entry = plain[0]["golden_entry"]
        header = "rank,pert_mode,stage,step,api_name,max_rel,dtype,shape,output_index\r\n"

        def answer(name, largest):
            shutil.rmtree(scratch / "noise", ignore_errors=True)
            for dump in golden.glob("step*/*/dump.json"):
                outputs = json.loads(dump.read_text())["data"].get(entry, {}).get("output", [])
                rows = [f'0,bit_noise,forward,0,{name},{largest},{one["dtype"]},"torch.Size({one["shape"]})",\r\n'
                        for one in outputs]
                place = scratch / "noise" / dump.parent.relative_to(golden)
                place.mkdir(parents=True)
                (place / "free_benchmark.csv").write_text(header + "".join(rows), newline="")
            return findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", "noise")

        done, objects = answer(entry, 1000)
        check(objects[0]["kind"] == "no_culprit" or objects[0]["golden_entry"] != entry, f"{objects[0]}")
        for name, largest in ((entry, 0), ("Torch.other.0.forward", 1000)):
            done, objects = answer(name, largest)
            check_equal("entry", (objects[0]["golden_entry"], objects[0]["kind"]), (entry, plain[0]["kind"]))
        check("none of its" in done.stderr and "free_benchmark.csv" in done.stderr, done.stderr)
        table = next((scratch / "noise").rglob("*.csv"))
        done, _ = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", str(table))
        many = len(list(golden.glob("step*/*/dump.json"))) > 1
        check_equal("status of one table", done.returncode, 2 if many else 0)
        table.write_text(header + "0,bit_noise\r\n")
        done, _ = findings_of(msprobe, folder, case, "statistics", scratch, "--noise-floor", "noise")
        check("free_benchmark.csv: line 2: 2 fields instead of 9" in done.stderr + done.stdout, done.stderr)

    def unread(scratch):
        """A message names a tensor that is cut short after the culprit; it does not count as a second fault."""
        copied(cases["tiny-matmul_tile"], "tensor", scratch)
        _, _, whole = first_of(scratch)
        data = json.loads((scratch / "target/step0/rank0/dump.json").read_text())["data"]
        names = list(data)
        behind = names[names.index("Torch.matmul.1.forward") + 1 :]
        folder_of = scratch / "target/step0/rank0/dump_tensor_data"
        inputs = sorted(path.name for path in folder_of.iterdir() if any(path.name.startswith(f"{name}.input.") for name in behind))
        check(len(inputs) > 5, "inputs behind the culprit")
        for name in inputs:
            kept = (folder_of / name).read_bytes()
            (folder_of / name).write_bytes(kept[: len(kept) // 2])
            done, rows, found = first_of(scratch)
            (folder_of / name).write_bytes(kept)
            for key in ("kind", "entry", "text"):
                check_equal(f"{key} with {name} cut short", found[0][key], whole[0][key])
            check_equal(f"other kinds with {name} cut short", [one["kind"] for one in found if one["kind"] == "unrecorded"], [])
            check("\nalso: " not in done.stderr, f"{name}: {done.stderr}")
            check("   unread   could not read the tensors of 1 row and used their statistics instead\n" in done.stderr, done.stderr)
            told = [row["Err_message"] for row in rows if "read failed" in str(row["Err_message"])]
            check_equal("rows that tell it", len(told), 1)
            check(f"Dump file: {name} not found or read failed." in str(told), told)

    def copied(case, task, scratch):
        """Both runs in the scratch folder, whose files may be spoilt."""
        for side, run_folder in (("target", case["runs"]["target"]), ("golden", case["runs"]["golden"])):
            shutil.copytree(folder / run_folder / task, scratch / side)

    def first_of(scratch, *options):
        done = run(msprobe, ["compare", "-tp", "target", "-gp", "golden", "--format", "jsonl", "--output-file", "-", *options], scratch)
        objects = [json.loads(line) for line in done.stdout.splitlines()]
        rows = [one for one in objects if one["kind"] == "row"]
        return done, rows, [one for one in objects if one["kind"] != "row"]

    def check_left_out(rows, behind, count):
        """Rows after an entry say that they were not compared, and no other row does."""
        reason = f"warning: Not compared: --first stopped after {behind}."
        left = [row for row in rows if reason in row["Err_message"]]
        check_equal("rows left out", len(left), count)
        check_equal("the last rows", rows[len(rows) - count:], left)
        last = max(at for at, row in enumerate(rows) if row["NPU Name"].startswith(behind))
        check_equal("rows up to the entry", last + 1, len(rows) - count)
        for row in left:
            check_equal("Result", row["Result"], "warning")
            check_equal("Origin", row["Origin"], "not compared")
            for column in ("Error", "Cosine", "MaxAbsErr", "Norm diff", "NormRelativeErr"):
                check_equal(column, row.get(column, "N/A"), "N/A")
        for row in rows[: last + 1]:
            check("Not compared" not in str(row["Err_message"]), f"looked at: {row}")

    def first_tensors(scratch):
        copied(cases["tiny-matmul_tile"], "tensor", scratch)
        _, _, whole = first_of(scratch)
        names = list(json.loads((scratch / "target/step0/rank0/dump.json").read_text())["data"])
        behind = names[names.index("Torch.matmul.1.forward") + 1 :]
        spoilt, kept = [], []
        for side in ("target", "golden"):
            for path in (scratch / side / "step0/rank0/dump_tensor_data").iterdir():
                later = any(path.name.startswith(name + ".") for name in behind)
                if later:
                    path.write_bytes(b"no tensor")
                (spoilt if later else kept).append(path)
            (scratch / side / "step1/rank0/dump.json").write_text("no dump")
        check(len(spoilt) > 50 and len(kept) > 50, "files on both sides of the culprit")
        done, _, _ = first_of(scratch)
        check("step1" in done.stderr and done.returncode == 2, "what is spoilt is seen when it is read")
        seen = []
        for threads in ("1", "4"):
            for path in spoilt + kept:
                os.utime(path, (1, 2))  # accessed before it was written: the next reading is noted, if any is
            done, rows, found = first_of(scratch, "--first", "-j", threads)
            check_equal("status", done.returncode, 0)
            check_left_out(rows, "Torch.matmul.1.forward", 59)
            for path in (scratch / "target/step1/rank0/dump.json", scratch / "golden/step1/rank0/dump.json"):
                check(str(path.relative_to(scratch)) not in done.stderr, done.stderr)
            check("read failed" not in done.stdout + done.stderr, "a complaint about what was left out")
            check("left out: 26 of 41 entries, after Torch.matmul.1.forward" in done.stderr, done.stderr)
            check("step1/rank0  left out: an earlier step of this rank has certain evidence" in done.stderr, done.stderr)
            check("   left out 26 entries after certain evidence" in done.stderr, done.stderr)
            for key in ("kind", "entry", "text", "excess", "confidence", "step", "rank"):
                check_equal(key, found[0][key], whole[0][key])
            read = [path.name for path in spoilt if path.stat().st_atime > 1]
            # A thread without work reads one tensor ahead.
            check(len(read) <= (0 if threads == "1" else 2 * 4), f"read behind the culprit: {read}")
            if not any(path.stat().st_atime > 1 for path in kept):
                print("# times of access are not kept here")
            seen.append((done.stdout, done.stderr))
        check_equal("results at 4 threads", seen[1], seen[0])

    def first_statistics(scratch):
        copied(cases["tiny-norm_eps"], "statistics", scratch)
        _, _, whole = first_of(scratch)
        (scratch / "target/step1/rank0/dump.json").unlink()
        (scratch / "target/step1/rank0/dump.json").mkdir()
        done, rows, found = first_of(scratch, "--first")
        check_equal("status", done.returncode, 0)
        check_left_out(rows, "Functional.layer_norm.0.forward", 98)
        check_equal("entry", found[0]["entry"], whole[0]["entry"])
        check_equal("text", found[0]["text"], whole[0]["text"])
        check("1 error, 0 warning, 13 pass; 98 left out" in done.stderr, done.stderr)
        done = run(msprobe, ["compare", "-tp", "target", "-gp", "golden", "--first", "--format", "md", "--output-file", "-"], scratch)
        check("1 error, 0 warning, 13 pass; 98 left out" in done.stdout, done.stdout)
        check("**step1/rank0** left out: an earlier step" in done.stdout, done.stdout)
        check("Not compared" not in done.stdout, "it reports rows that were left out")

    tests = [(f"{name}, {task}", of_case(case, task)) for name, case in cases.items() for task in case["tasks"]]
    return [*tests, ("--noise-floor", noise_floor), ("--noise-floor of free_benchmark", noise_of_calls),
            ("a tensor that cannot be read", unread), ("--first, tensors", first_tensors),
            ("--first, statistics", first_statistics)]


if __name__ == "__main__":
    main(make_tests)
