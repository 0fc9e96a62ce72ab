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
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import check, check_equal, data, run, tap


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


def is_evidence(finding):
    return finding.get("confidence") in ("likely", "certain")


def check_schema(objects, schema):
    evidence, stretch, none, meeting, note = schema["oneOf"]
    for one in objects:
        form = {"stretch": stretch, "no_culprit": none, "meeting_points": meeting, "note": note}.get(one["kind"], evidence)
        check_equal("keys", sorted(one), sorted(form["required"]))
        check_equal("keys of the schema", sorted(form["properties"]), sorted(form["required"]))
        if form is evidence:
            check(one["kind"] in form["properties"]["kind"]["enum"], f"unknown kind {one['kind']}")


def tensor(norm):
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": norm, "Min": -norm,
            "Mean": norm / 8, "Norm": norm}


def forward(inputs, outputs, **keywords):
    return {"input_args": inputs, "input_kwargs": keywords, "output": outputs}


def make_tests(msprobe, cases, folder, schema):
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

    def without(scratch):
        case = cases["tiny-norm_eps"]
        done, objects = findings_of(msprobe, folder, case, "statistics", scratch, "--python-rules")
        check("kind" not in objects[0] and "Evidence" not in objects[0], f"--python-rules: {objects[0]}")
        check("culprit" not in done.stderr, done.stderr)

    def noise_floor(scratch):
        # Where golden's noise is as large as the fault, the fault is no evidence.
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

    def gate(scratch):
        def status(target, golden, *more):
            for side, dump in (("t", target), ("g", golden)):
                for rank, entries in dump.items():
                    place = scratch / side / "step0" / rank
                    place.mkdir(parents=True, exist_ok=True)
                    task = "statistics" if "Norm" in json.dumps(entries) else "structure"
                    head = {"task": task, "level": "L1", "framework": "pytorch"}
                    (place / "dump.json").write_text(json.dumps({**head, "data": entries}))
            return run(msprobe, ["compare", "-tp", "t", "-gp", "g", "-o", "out", "--fail-on", "culprit", *more], scratch)

        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3]}
        number = {"type": "int", "value": 2}
        entry = {"Torch.add.0.forward": {"input_args": [tensor, number], "input_kwargs": {}, "output": [tensor]}}
        # Equal arguments are no equal tensors: nothing was measured.
        done = status({"rank0": entry}, {"rank0": entry})
        check_equal("status of a dump without statistics", done.returncode, 1)
        check("no culprit: no tensor could be compared" in done.stdout, done.stdout)
        tensor.update({"Max": 1.5, "Min": -1.5, "Mean": 0.25, "Norm": 2.0})
        check_equal("status of equal dumps", status({"rank0": entry}, {"rank0": entry}).returncode, 0)
        done = status({"rank0": entry}, {"rank0": entry, "rank1": entry})
        check_equal("status with a rank on one side", done.returncode, 1)
        for options, reason in ((["--without-evidence", "z"], "'z' is not one of a, b, c, d, e"),
                                (["--python-rules"], "does not look for a culprit"),
                                (["--noise-floor", "g/step0"], "must be of the same kind")):
            done = status({"rank0": entry}, {"rank0": entry}, *options)
            check_equal(f"status of {options}", done.returncode, 2)
            check(reason in done.stderr, done.stderr)

    def groups(scratch):
        """Ranks 0 and 1 reduce together, 2 and 3 too. The fault of rank 2 explains what came to 3, but not to 0 and 1."""
        for side in ("t", "g"):
            for rank in range(4):
                own = 3.0 if side == "t" and rank == 2 else 2.0
                summed = 5.0 if side == "t" else 4.0
                group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1] if rank < 2 else [2, 3], "group_id": "0"}
                data = {
                    "Functional.relu.0.forward": forward([tensor(1.0)], [tensor(own)]),
                    "Distributed.all_reduce.0.forward": forward([tensor(own)], [tensor(summed)], group=group),
                    "Functional.relu.1.forward": forward([tensor(summed)], [tensor(summed)]),
                }
                place = scratch / side / "step0" / f"rank{rank}"
                place.mkdir(parents=True)
                head = {"task": "statistics", "level": "L1", "framework": "pytorch"}
                (place / "dump.json").write_text(json.dumps({**head, "data": data}))
        done = run(msprobe, ["compare", "-tp", "t", "-gp", "g", "--format", "jsonl", "-o", "-"], scratch)
        objects = [json.loads(line) for line in done.stdout.splitlines() if not line.startswith('{"kind": "row"')]
        named = [(one["entry"], one["kind"], one["rank"]) for one in objects if is_evidence(one)]
        check_equal("evidence", named, [("Functional.relu.0.forward", "introduced", "rank2"),
                                        ("Distributed.all_reduce.0.forward", "communication", "rank0"),
                                        ("Distributed.all_reduce.0.forward", "communication", "rank1")])

    def write_side(scratch, side, data, **beside):
        place = scratch / side / "step0" / "rank0"
        place.mkdir(parents=True)
        head = {"task": "statistics", "level": "mix", "framework": "pytorch"}
        (place / "dump.json").write_text(json.dumps({**head, "data": data}))
        for name, content in beside.items():
            (place / f"{name}.json").write_text(json.dumps(content))

    def compared(scratch):
        done = run(msprobe, ["compare", "-tp", "t", "-gp", "g", "--format", "jsonl", "-o", "-"], scratch)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return done, [one for one in rows if one["kind"] == "row"], [one for one in rows if one["kind"] != "row"]

    def golden_alone(scratch):
        """A call that this run lacks is told with golden's line and module."""
        wrong, right = tensor(3.0), tensor(2.0)
        first = forward([tensor(1.0)], [tensor(1.5)])
        call = "Torch.clip_norm.0.forward"
        write_side(scratch, "t", {"Functional.relu.0.forward": first, "Functional.silu.0.forward": forward([tensor(1.5)], [wrong])})
        write_side(scratch, "g", {"Functional.relu.0.forward": first, call: forward([tensor(1.5)], [tensor(1.25)]),
                                  "Functional.silu.0.forward": forward([tensor(1.25)], [right])},
                   stack={"0": [[call], ["File /srv/train.py, line 7, in step, \\n clip(gradients)"]]}, construct={call: "clip_grad"})
        done, _, found = compared(scratch)
        check_equal("kind", (found[0]["kind"], found[0]["entry"], found[0]["module"]), ("removed", call, "clip_grad"))
        check(found[0]["where"].startswith("in golden: /srv/train.py, line 7, in step"), found[0]["where"])
        check(f"culprit: clip_grad > {call} (golden), step 0, rank 0   certain\n" in done.stderr, done.stderr)
        check("   in golden: /srv/train.py:7" in done.stderr, done.stderr)
        check("   before   1 entry is equal\n" in done.stderr, done.stderr)
        (scratch / "g/step0/rank0/stack.json").write_text("{")  # it is none that can be read
        done, _, found = compared(scratch)
        check_equal("where", found[0]["where"], "")
        check("on both sides\n" in done.stderr, done.stderr)

    def cut_off(scratch):
        """What is detached is named, not the gradient that is wrong for it."""
        def gradients(value):
            return {"input": [tensor(value)], "output": [tensor(value)]}
        trained, cut = ({**tensor(2.0), "requires_grad": grad} for grad in (True, False))
        for side, argument in (("t", cut), ("g", trained)):
            silu = {} if side == "t" else {"Functional.silu.0.backward": gradients(7.0)}
            write_side(scratch, side, {
                "Functional.relu.0.forward": forward([tensor(1.0)], [tensor(1.5)]),
                "Functional.silu.0.forward": forward([tensor(1.5)], [trained]),
                "Functional.linear.0.forward": forward([argument], [tensor(4.0)]),
                "Functional.linear.0.backward": gradients(6.0), **silu,
                "Functional.relu.0.backward": gradients(8.5 if side == "t" else 8.0)})
        done, _, found = compared(scratch)
        check_equal("kinds", [(one["kind"], one["entry"], one["confidence"]) for one in found],
                    [("requires_grad", "Functional.linear.0.forward", "certain"),
                     ("gradient", "Functional.relu.0.backward", "certain")])
        check("golden runs the backward of Functional.silu.0, this run does not\n" in done.stderr, done.stderr)
        check("\nalso: " not in done.stderr, done.stderr)

    def unread(scratch):
        """A tensor that is cut short behind the culprit is told, and is no second fault."""
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
        """Rows behind an entry say that nobody looked at them, and no other does."""
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
        check("Not compared" not in done.stdout, "rows that were left out are no news")

    def first_gates(scratch):
        copied(cases["tiny-matmul_tile"], "tensor", scratch)
        # Without its statistics no rule of verdicts sees the fault: what was left out must not pass for agreement.
        for gate, status in (("culprit", 1), ("error", 1), ("warning", 1), ("unmatched", 1), ("never", 0)):
            done, rows, _ = first_of(scratch, "--first", "--fail-on", gate)
            check_equal(f"status of {gate}", done.returncode, status)
            check(all(row["Result"] == "pass" for row in rows if "Not compared" not in str(row["Err_message"])), "a verdict")
        for options, reason in ((["--strict"], "cannot be combined"), (["--python-rules"], "does not look for a culprit"),
                                (["-da"], "-da does not look for evidence"),
                                (["--consistent_check", "--backend", "fsdp"], "--consistent_check does not look for evidence")):
            done, _, _ = first_of(scratch, "--first", *options)
            check_equal(f"status of {options}", done.returncode, 2)
            check(reason in done.stderr, done.stderr)

    def first_without_fault(scratch):
        """Nothing is certain: all is read, and told as ever."""
        for name, task in (("tiny-benign-21-plain-avx512", "tensor"), ("tiny_half-brighter", "statistics")):
            here = scratch / name
            here.mkdir()
            copied(cases[name], task, here)
            one, two = first_of(here), first_of(here, "--first")
            check_equal("results", two[0].stdout, one[0].stdout)
            check_equal("answer", two[0].stderr, one[0].stderr)

    def first_of_ranks(scratch):
        """Each rank stops by itself; what a rank that stopped would have given is held against nobody."""
        for side in ("target", "golden"):
            for step in range(2):
                for rank in range(2):
                    faulty = side == "target" and rank == 1
                    own, summed = 3.0 if faulty else 2.0, 5.0 if side == "target" else 4.0
                    group = {"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "0"}
                    slope = {"type": "float", "value": 0.5 if faulty else 0.1}
                    data = {
                        "Functional.leaky_relu.0.forward": forward([tensor(1.0), slope], [tensor(own)]),
                        "Distributed.all_reduce.0.forward": forward([tensor(own)], [tensor(summed)], group=group),
                        "Functional.relu.0.forward": forward([tensor(summed)], [tensor(summed)]),
                    }
                    place = scratch / side / f"step{step}" / f"rank{rank}"
                    place.mkdir(parents=True)
                    head = {"task": "statistics", "level": "L1", "framework": "pytorch"}
                    (place / "dump.json").write_text(json.dumps({**head, "data": data}))
        done, rows, found = first_of(scratch, "--first")
        named = [(one["entry"], one["rank"], one["step"]) for one in found if is_evidence(one)]
        check_equal("evidence", named, [("Functional.leaky_relu.0.forward", "rank1", "step0")])
        check("doubt" not in done.stderr, done.stderr)
        check_equal("tables", sorted({(row["Step"], row["Rank"]) for row in rows}),
                    [("step0", "rank0"), ("step0", "rank1"), ("step1", "rank0")])
        _, again, _ = first_of(scratch, "--first", "-j", "8")
        check_equal("rows at 8 threads", again, rows)

    def first_of_others(scratch):
        """What has no entries with evidence is refused, not read to its end."""
        for side in ("target", "golden"):
            place = scratch / side / "rank0"
            place.mkdir(parents=True)
            (place / "debug.json").write_text(json.dumps({"task": "statistics", "level": "debug", "framework": "pytorch", "data": {}}))
        done, _, _ = first_of(scratch, "--first")
        check_equal("status", done.returncode, 2)
        check("values saved by name are not diagnosed" in done.stderr, done.stderr)

    def threads(scratch):
        case = cases["tiny-matmul_tile"]
        one, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "1")
        many, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "8")
        check_equal("results at 8 threads", many.stdout, one.stdout)
        check_equal("answer at 8 threads", many.stderr, one.stderr)

    tests = [(f"{name}, {task}", of_case(case, task)) for name, case in cases.items() for task in case["tasks"]]
    return [*tests, ("--python-rules names nobody", without), ("--noise-floor", noise_floor),
            ("--noise-floor of free_benchmark", noise_of_calls), ("the gate", gate), ("groups of ranks", groups),
            ("what golden alone runs", golden_alone), ("a tensor that is cut off", cut_off), ("a tensor that cannot be read", unread),
            ("any number of threads", threads), ("--first, tensors", first_tensors), ("--first, statistics", first_statistics),
            ("--first, gates", first_gates), ("--first without a fault", first_without_fault), ("--first on ranks", first_of_ranks),
            ("--first without entries", first_of_others)]


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    msprobe, folder = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    cases = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "cases").glob("*.json"))}
    schema = json.loads(pathlib.Path(sys.argv[3]).read_text())
    return tap(make_tests(str(msprobe), cases, data(folder, "runs"), schema))


if __name__ == "__main__":
    sys.exit(main())
