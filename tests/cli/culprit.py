#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The culprit that compare names: on recorded pairs with a planted fault, and on pairs that differ in kernels alone.

usage: culprit.py MSPROBE CASES SCHEMA
"""

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import check, check_equal, run, tap  # noqa: E402


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
    evidence, none = schema["oneOf"]
    for one in objects:
        form = none if one["kind"] == "no_culprit" else evidence
        check_equal("keys", sorted(one), sorted(form["required"]))
        check_equal("keys of the schema", sorted(form["properties"]), sorted(form["required"]))
        if form is evidence:
            check(one["kind"] in form["properties"]["kind"]["enum"], f"unknown kind {one['kind']}")


def make_tests(msprobe, folder, schema):
    def of_case(case, task):
        def test(scratch):
            done, objects = findings_of(msprobe, folder, case, task, scratch)
            check(objects, done.stderr)
            check_schema(objects, schema)
            if case["benign"]:
                check_equal("kind", objects[0]["kind"], "no_culprit")
                check_equal("status", done.returncode, 0)  # hints do not count
                check("\nno culprit: " in "\n" + done.stderr, done.stderr)
                return
            check(is_named(objects[0], case["expect"]), f"{objects[0]}, expected {case['expect']}")
            check(objects[0]["confidence"] != "hint", "only a hint")
            check_equal("status", done.returncode, 1)
            check(f"culprit   {objects[0]['entry']}" in done.stderr, done.stderr)

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

    def gate(scratch):
        def status(target, golden, *more):
            for side, dump in (("t", target), ("g", golden)):
                for rank, data in dump.items():
                    place = scratch / side / "step0" / rank
                    place.mkdir(parents=True, exist_ok=True)
                    task = "statistics" if "Norm" in json.dumps(data) else "structure"
                    head = {"task": task, "level": "L1", "framework": "pytorch"}
                    (place / "dump.json").write_text(json.dumps({**head, "data": data}))
            return run(msprobe, ["compare", "-tp", "t", "-gp", "g", "-o", "out", "--fail-on", "culprit", *more], scratch)

        tensor = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [3]}
        number = {"type": "int", "value": 2}
        entry = {"Torch.add.0.forward": {"input_args": [tensor, number], "input_kwargs": {}, "output": [tensor]}}
        # Equal arguments are no equal tensors: nothing was measured.
        done = status({"rank0": entry}, {"rank0": entry})
        check_equal("status of a dump without statistics", done.returncode, 1)
        check("no culprit: no tensor could be compared" in done.stderr, done.stderr)
        tensor.update({"Max": 1.5, "Min": -1.5, "Mean": 0.25, "Norm": 2.0})
        check_equal("status of equal dumps", status({"rank0": entry}, {"rank0": entry}).returncode, 0)
        done = status({"rank0": entry}, {"rank0": entry, "rank1": entry})
        check_equal("status with a rank on one side", done.returncode, 1)
        for options, reason in ((["--without-evidence", "z"], "'z' is none of a, b, c, d, e"),
                                (["--python-rules"], "names no culprit"),
                                (["--noise-floor", "g/step0"], "must be of the same kind")):
            done = status({"rank0": entry}, {"rank0": entry}, *options)
            check_equal(f"status of {options}", done.returncode, 2)
            check(reason in done.stderr, done.stderr)

    def groups(scratch):
        """Ranks 0 and 1 reduce together, 2 and 3 too. The fault of rank 2 explains what came to 3, but not to 0 and 1."""
        def tensor(norm):
            return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4], "Max": norm, "Min": -norm,
                    "Mean": norm / 8, "Norm": norm}

        def forward(inputs, outputs, **keywords):
            return {"input_args": inputs, "input_kwargs": keywords, "output": outputs}

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
        named = [(one["entry"], one["kind"], one["rank"]) for one in objects if one["confidence"] != "hint"]
        check_equal("evidence", named, [("Functional.relu.0.forward", "birth", "rank2"),
                                        ("Distributed.all_reduce.0.forward", "communication", "rank0"),
                                        ("Distributed.all_reduce.0.forward", "communication", "rank1")])

    def threads(scratch):
        case = cases["tiny-matmul_tile"]
        one, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "1")
        many, _ = findings_of(msprobe, folder, case, "tensor", scratch, "-j", "8")
        check_equal("results at 8 threads", many.stdout, one.stdout)
        check_equal("answer at 8 threads", many.stderr, one.stderr)

    cases = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "cases").glob("*.json"))}
    tests = [(f"{name}, {task}", of_case(case, task)) for name, case in cases.items() for task in case["tasks"]]
    return [*tests, ("--python-rules names nobody", without), ("--noise-floor", noise_floor), ("the gate", gate), ("groups of ranks", groups),
            ("any number of threads", threads)]


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[2]).resolve()
    return tap(make_tests(str(pathlib.Path(sys.argv[1]).resolve()), folder, json.loads(pathlib.Path(sys.argv[3]).read_text())))


if __name__ == "__main__":
    sys.exit(main())
