#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The diagnosis judges an operation by its row in data/operations.yaml, and by nothing else.

usage: operation_rows.py MSPROBE SOURCE
"""

import json
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "dump"))
import made_pairs
import make_names
import make_operations
from harness import check, check_equal, data, main, run

KINDS = ("activation", "norm", "product", "softmax")
NOBODY_KNOWS = "nobody_knows_it"
CALLED = r'\b((?:Functional|NPU|Tensor|Torch)\.)%s(\.\d+\.)'
COMPARED = re.compile(r'(\w*)\)*\.?\s*(?:[=!]=\s*|\b(?:starts_with|ends_with|find|contains)\(\s*)"([\w.]+)"')
# Names of types, of Python's libraries, of statistics, parameters and folders, not of operations.
TYPES = ("dtype", "type", "library")
OTHER_WORDS = ("Bool", "bool", "complex", "Max", "Mean", "Min", "Norm", "Shape", "gamma", "rank")


def table(source):
    """The rows, and the names that share one."""
    rows = make_operations.read(source / "data" / "operations.yaml")

    def judged_by(row):
        names = make_operations.names_of(row.get("signature", ""))
        positions = [[names.index(name) for name in row.get(key, [])] for key in ("parameters", "running_statistics")]
        return json.dumps([row["kind"], row.get("nature"), sorted(row.get("is", [])), positions])

    groups = {}
    for name, row in rows.items():
        groups.setdefault(judged_by(row), []).append(name)
    siblings = {name: [other for other in groups[judged_by(row)] if other != name] for name, row in rows.items()}
    return rows, siblings


def renamed(folder, place, old, new):
    """The dump with another name of an operation."""
    shutil.copytree(folder, place, symlinks=True)
    for path in place.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.unlink()
        path.write_text(re.sub(CALLED % re.escape(old), rf"\g<1>{new}\2", text), encoding="utf-8")
    return place


def first_finding(msprobe, target, golden, scratch):
    done = run(msprobe, ["compare", "-tp", str(target), "-gp", str(golden), "--format", "jsonl", "-o", "-"], scratch)
    found = next((json.loads(line) for line in done.stdout.splitlines() if not line.startswith('{"kind": "row"')), None)
    check(found is not None, done.stderr)
    return found


def without_name(found, name):
    """The kind, place and confidence of a finding; `*` is the operation called `name`."""
    def entry(key):
        return re.sub(rf"\.{re.escape(name)}\.(?=\d)", ".*.", found.get(key) or "")

    return {"kind": found["kind"], "place": [entry("entry"), entry("golden_entry"), found.get("step"), found.get("rank")],
            "confidence": found.get("confidence")}


def recorded_pairs(folder):
    """(name, target, golden, fault, None) of statistics that were recorded."""
    for recorder in (".", "recorders/recorders/python_tool_26.2.0", "recorders/recorders/python_tool_8.3.3"):
        for path in sorted((folder / recorder / "cases").glob("*.json")):
            case = json.loads(path.read_text(encoding="utf-8"))
            sides = [folder / recorder / case["runs"][side] / "statistics" for side in ("target", "golden")]
            yield f"{path.stem} of {pathlib.Path(recorder).name or 'ours'}", *sides, case.get("fault"), None
    for recorder in ("ours", "python_tool"):
        for dtype in ("fp32", "bf16"):
            run_by = folder / "one_run" / "recorders" / recorder / dtype
            for name in ("right", "eps", "scale"):
                yield f"{name}, {dtype} of {recorder}", run_by / name, run_by / "golden", None, None


def make_tests(msprobe, source):
    source = pathlib.Path(source)
    rows, siblings = table(source)
    folder = data(source / "tests" / "data", "diagnosis") / "diagnosis"
    made = tempfile.TemporaryDirectory(prefix="msprobe-made-")
    pairs = [*recorded_pairs(folder),
             *((name, *sides, None, culprit) for name, *sides, culprit in made_pairs.make(pathlib.Path(made.name)))]

    def no_rule_compares_names(_scratch):
        names = set(rows) | {name for row in rows.values() for name in row.get("also", [])}
        found = []
        for part in ("anomaly", "compare", "diagnosis", "pairing", "precheck", "verdict"):
            for path in sorted((source / "src" / part).rglob("*.[ch]pp")):
                if path.parent.name == "replay":  # has a function for each operation
                    continue
                for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                    words = {word.rsplit(".")[-1].strip("_").lower() for subject, word in COMPARED.findall(line)
                             if subject not in TYPES and word not in OTHER_WORDS}
                    if words & names:
                        found.append(f"{path.name}:{number}: {line.strip()}")
        check_equal("comparisons with names of operations", found, [])

    def names_belong_to_their_rows(_scratch):
        wrong = []
        for row_name, row in rows.items():
            if row["kind"] == "none":
                continue
            words = list(row.get("listed", []))
            words += row["risk"][1:] if isinstance(row.get("risk"), list) else []
            places = [word.partition("=")[0] for key in ("recorded", "unrecorded") for word in row.get(key, [])]
            places += [word.partition("=")[0].rsplit(".", 2)[0] for word in row.get("masked", [])]
            words += [word for word in places if word not in make_names.PLACES]
            wrong += [f"{word} in {row_name}" for word in words
                      if make_operations.row_name(word) not in [row_name, *row.get("also", [])]]
        check_equal("names that belong to other rows", wrong, [])

    def every_row_finds_its_replay(_scratch):
        named = {row["replay"] for row in rows.values() if "replay" in row}
        found = []
        for path in (source / "src" / "diagnosis" / "replay").glob("*.cpp"):
            listed = path.read_text(encoding="utf-8").partition("kOperations = {\n")[2].partition("\n  };")[0]
            found += re.findall(r'[{(]"(\w+)",', listed)
        check_equal("functions of the replay", sorted(found), sorted(named))
        missing = [name for name, row in rows.items() if "replay" in row
                   and not any(row.get(key) for key in ("signature", *row.get("in", [])))]
        check_equal("rows with a replay and no signature", missing, [])

    def of_pair(*paths, fault, culprit):
        def test(scratch):
            text = "".join(path.read_text(encoding="utf-8") for path in paths[0].rglob("dump.json"))
            present = {match[2] for match in re.finditer(CALLED % r"(\w+)", text)}
            found = first_finding(msprobe, *paths, scratch)
            if culprit is not None:
                check_equal("culprit", found["entry"], culprit)
            tried = 0
            most = 2 if culprit is None else None  # recorded pairs are large
            for old in sorted(name for name in present if name in rows and rows[name]["kind"] in KINDS):
                # A fault of the optimizer shows in parameters, and only the row says which arguments are parameters.
                needs_row = fault == "update" and "parameters" in rows[old]
                others = [other for other in siblings[old] if other not in present][:most]
                for new in others + ([] if needs_row else [NOBODY_KNOWS]):
                    sides = [renamed(path, scratch / f"{side}-{old}-{new}", old, new)
                             for side, path in zip(("target", "golden"), paths, strict=True)]
                    before = without_name(found, old)
                    after = without_name(first_finding(msprobe, *sides, scratch), new)
                    if new == NOBODY_KNOWS:  # its confidence may be lower, and what rounding explains is not known
                        compared = "kind" if found.get("confidence") is None else "place"
                        check_equal(f"{compared} with {old} as {new}", after[compared], before[compared])
                    else:
                        check_equal(f"finding with {old} as {new}", after, before)
                    tried += 1
                    for side in sides:
                        shutil.rmtree(side)
            check(tried > 0, "no operation was renamed")

        return test

    def sixty_pairs(_scratch):
        made.cleanup()
        check(len(pairs) >= 60, f"{len(pairs)} pairs")

    return [("no rule compares names", no_rule_compares_names), ("names belong to their rows", names_belong_to_their_rows),
            ("every row finds its replay", every_row_finds_its_replay),
            *((f"{name} with operations renamed", of_pair(*paths, fault=fault, culprit=culprit))
              for name, *paths, fault, culprit in pairs),
            ("at least 60 pairs", sixty_pairs)]


if __name__ == "__main__":
    main(make_tests)
