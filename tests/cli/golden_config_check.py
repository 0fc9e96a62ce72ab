#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the packs of the golden cases (config_check -c). What the Python tool gives is expected, but for the cases named here, which
say what is right instead; docs/differences.md has the reasons.

usage: golden_config_check.py MSPROBE GOLDEN_FOLDER
"""

import json
import math
import shutil
import subprocess
import zipfile

import harness
import sheets

STATIC = "hyperparameters_static.json"
NO_DIFFERENCES = [None, None, None, None]

# Sections of the edge cases whose rows are not the Python tool's, or that it does not live to write.
EDGE_ROWS = {
    "env_both_npu": [["HCCL_INTRA_ROCE_ENABLE", "HCCL_INTRA_ROCE_ENABLE", 0, "1", "error"]],
    "env_both_gpu_defaults": [],
    "env_bench_npu_cmp_gpu": [
        ["HCCL_INTRA_ROCE_ENABLE", "only bench has this env", None, None, "warning"],
        ["HCCL_INTRA_PCIE_ENABLE", "only bench has this env", 1, None, "warning"],
        ["ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING", 0, "1", "error"],
    ],
    "env_bench_gpu_cmp_npu_empty_string": [
        ["NCCL_ALGO", "HCCL_ALGO", None, "None", "error"],
        ["only cmp has this env", "HCCL_INTRA_ROCE_ENABLE", None, None, "warning"],
        ["only cmp has this env", "HCCL_INTRA_PCIE_ENABLE", None, 1, "warning"],
    ],
    "pip_formats": [  # Transformers is transformers
        ["megatron", "None", "0.1", "error"],
        ["numpy", "None", "1.24", "error"],
        ["peft", "None", "1", "error"],
        ["torch", "2.1.0", "2.1.0+cpu", "error"],
    ],
    "weights_nan": [
        [0, 0, "w", True, None, 0, 0, 0],
        [0, 0, "neg", False, 0.5, 0, 0, 0],
        [0, 0, "inf", True, None, 0, 0, 0],
        [0, 0, "zero", False, *NO_DIFFERENCES],
        [0, 0, "b_only", "only bench have", *NO_DIFFERENCES],
        [0, 0, "c_only", "only cmp have", *NO_DIFFERENCES],
    ],
    "weights_missing_only": [
        [0, 0, "w", "only bench have", *NO_DIFFERENCES],
        [0, 0, "v", "only cmp have", *NO_DIFFERENCES],
        [1, 0, "w", "only bench have", *NO_DIFFERENCES],
        [7, 0, "w", "only cmp have", *NO_DIFFERENCES],
    ],
    "dataset_type_change_tensor_to_scalar": [[0, 0, "args.0", False, *NO_DIFFERENCES]],
    "dataset_type_change_scalar_to_tensor": [[0, 0, "args.0", False, *NO_DIFFERENCES]],
    "dataset_type_change_tensor_to_dict": [[0, 0, "args.0", False, *NO_DIFFERENCES]],
    "dataset_no_common_step": [
        [0, 0, "dataset.json", "only bench have", *NO_DIFFERENCES],
        [1, 0, "dataset.json", "only cmp have", *NO_DIFFERENCES],
    ],
    "hyper_no_common_file": [
        [STATIC, STATIC, "Only in benchmark", None, None, None, "error"],
        ["hyperparameters_dynamic.json", "Only in comparison", "hyperparameters_dynamic.json", None, None, None, "error"],
    ],
    "hyper_crash": [[STATIC, "adam-beta2", "Only in benchmark", "0.9", None, None, "warning"]],
    "malicious": [[STATIC, "a", "a", "=1+1", "x", "pure name", "error"]],
    "malicious_flag_value": [[STATIC, "a", "a", "--b", "x", "pure name", "error"]],
}
EDGE_STATUS = {
    "empty_common": {"env": "missing", "pip": "missing"},
    "env_both_gpu_defaults": {"env": "pass"},
    "weights_missing_only": {"weights": "error"},
    "weights_bad_layout": {"weights": "unreadable"},
    "dataset_no_common_step": {"dataset": "error"},
    "dataset_type_change_tensor_to_scalar": {"dataset": "error"},
    "dataset_type_change_scalar_to_tensor": {"dataset": "error"},
    "dataset_type_change_tensor_to_dict": {"dataset": "error"},
    "hyper_no_common_file": {"hyperparameters": "error"},
    "hyper_crash": {"hyperparameters": "warning"},
    "random_bad_rank": {"random": "unreadable"},
    "random_rank_prefix_nonjson": {"random": "missing"},  # no rank in the reference
}
EDGE_FAILS = {"weights_bad_layout", "random_bad_rank"}  # a part that cannot be read ends with status 2

HYPER_ROWS = {
    "float_int": [],
    "string_forms": [],
    "bf16_vs_fp32": [
        [STATIC, "Only in comparison", "fp32", None, True, None, "warning"],
        [STATIC, "bf16", "Only in benchmark", "True", None, None, "warning"],
    ],
    "double_match_alias": [[STATIC, "learning_rate", "Only in benchmark", "1", None, None, "warning"]],
    "double_match_fuzzy": [[STATIC, "adam-beta2", "Only in benchmark", "0.95", None, None, "warning"]],
    "fuzzy_steals": [
        [STATIC, "Only in comparison", "other", None, 1, None, "warning"],
        [STATIC, "micro-batch-siz", "Only in benchmark", "1", None, None, "warning"],
    ],
    "dotted_collision": [[STATIC, "critic.lr", "critic.lr", "2", "3", "pure name", "error"]],
    "dotted_collision2": [[STATIC, "actor.lr", "actor.lr", "1", "9", "pure name", "error"]],
}


def write_pack(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content if isinstance(content, str) else json.dumps(content))


def same_cell(ours, expected):
    if isinstance(expected, (list, dict)):
        expected = str(expected)
    if expected == "":
        expected = None
    if isinstance(ours, bool) != isinstance(expected, bool):
        return False
    if isinstance(ours, (int, float)) and isinstance(expected, (int, float)):
        return math.isclose(ours, expected, rel_tol=1e-13, abs_tol=0)
    return ours == expected


def check_rows(what, ours, expected):
    harness.check_equal(f"{what}: rows", len(ours), len(expected))
    for left, right in zip(ours, expected):
        cells = all(same_cell(a, b) for a, b in zip(left, right))
        harness.check(len(left) == len(right) and cells, f"{what}: got {left}, expected {right}")


def compare(msprobe, scratch, bench, cmp, *more):
    write_pack(scratch / "bench.zip", bench)
    write_pack(scratch / "cmp.zip", cmp)
    return harness.run(msprobe, ["config_check", "-c", "bench.zip", "cmp.zip", "-o", "out", *more], scratch)


def statuses(book):
    return {row[0]: row[1] for row in book["summary"][1:]}


def check_edge(msprobe, name, case, scratch):
    result = compare(msprobe, scratch, case["bench"], case["cmp"])
    harness.check_equal("exit status", result.returncode, 2 if name in EDGE_FAILS else 0)
    book = sheets.read(scratch / "out" / "result.xlsx")
    harness.check_equal("sections", [row[0] for row in book["summary"]][1:], SECTIONS)
    python = case["result"].get("sheets", {})
    expected = {row[0]: row[1] for row in python.get("summary", [[]])[1:]}
    expected.update(EDGE_STATUS.get(name, {}))
    for section in SECTIONS:
        got = statuses(book)[section]
        harness.check_equal(section, got, expected.get(section, "missing"))
        harness.check_equal(f"sheet {section}", section in book, got not in ("missing", "unreadable"))
        if section in book:
            rows = EDGE_ROWS[name] if name in EDGE_ROWS else python[section][1:]
            check_rows(section, book[section][1:], rows)
            if section in python:
                harness.check_equal("columns", book[section][0], python[section][0])


def check_hyper(msprobe, name, case, scratch):
    files = ({f"hyperparameters/{STATIC}": case["bench"]}, {f"hyperparameters/{STATIC}": case["cmp"]})
    result = compare(msprobe, scratch, *files)
    harness.check_equal("stderr", [x for x in result.stderr.splitlines() if "error: " in x and "msprobe" in x], [])
    harness.check_equal("exit status", result.returncode, 0)
    rows = HYPER_ROWS.get(name, case["rows"])
    check_rows(name, sheets.read(scratch / "out" / "result.xlsx")["hyperparameters"][1:], rows)


def check_recorded(msprobe, golden, scratch):
    """Recorded values win over those of scripts, if both packs have them."""
    recorded = "hyperparameters_dynamic.json"

    def pack(values, **run):
        script = dict(zip(("train.lr", "num-layers", "width"), values))
        return {f"hyperparameters/{STATIC}": script, f"hyperparameters/{recorded}": run}

    ours = pack("123", lr=0.1, num_layers=2, seed=1)
    theirs = pack("567", lr=0.1, num_layers=4, width=7)
    result = compare(msprobe, scratch, ours, theirs)
    harness.check_equal("exit status", result.returncode, 0)
    rows = [
        [STATIC, "width", "width", "3", "7", "pure name", "error"],
        [recorded, "num_layers", "num_layers", "2", "4", "pure name", "error"],
        [recorded, "seed", "Only in benchmark", "1", None, None, "warning"],
        [recorded, "Only in comparison", "width", None, 7, None, "warning"],
    ]
    got = sheets.read(scratch / "out" / "result.xlsx")["hyperparameters"][1:]
    check_rows("recorded", by_text(got), by_text(rows))
    # One pack without a recording leaves the scripts alone.
    del theirs[f"hyperparameters/{recorded}"]
    compare(msprobe, scratch, ours, theirs, "--overwrite")
    got = sheets.read(scratch / "out" / "result.xlsx")["hyperparameters"][1:]
    harness.check_equal("names", sorted(row[1] for row in got if row[0] == STATIC), ["num-layers", "train.lr", "width"])


SECTIONS = ["env", "pip", "dataset", "weights", "hyperparameters", "random"]


def by_text(rows):
    return sorted(rows, key=str)


def check_packs(msprobe, golden, scratch):
    packs = golden / "packs"
    result = harness.run(
        msprobe, ["config_check", "-c", str(packs / "bench.zip"), str(packs / "cmp.zip"), "-o", "out"], scratch
    )
    harness.check_equal("exit status", result.returncode, 0)
    book = sheets.read(scratch / "out" / "result.xlsx")
    expected = json.loads((packs / "result_sheets.json").read_text(encoding="utf-8"))
    harness.check_equal("sheets", list(book), list(expected))
    # The Python tool exchanges the sides of env, has one variable twice, and takes 0 for something else than "0".
    expected["env"][1:] = [
        ["NCCL_DETERMINISTIC", "HCCL_DETERMINISTIC", False, "true", "error"],
        ["only cmp has this env", "HCCL_INTRA_ROCE_ENABLE", None, 0, "warning"],
        ["only cmp has this env", "HCCL_INTRA_PCIE_ENABLE", None, 1, "warning"],
    ]
    for name in ("weights", "random"):  # in no fixed order there
        expected[name][1:] = by_text(expected[name][1:])
        book[name][1:] = by_text(book[name][1:])
    for name, rows in expected.items():
        check_rows(name, book[name], rows)
    # Colours: an error red, a warning yellow, the header as it always is.
    colors = sheets.styles(scratch / "out" / "result.xlsx", 2)
    harness.check_equal("error", colors["A2"], ("FFFFC7CE", False))
    harness.check_equal("warning", colors["A3"], ("FFFFEB9C", False))
    # The members are next to the workbook, byte for byte.
    for side in ("bench", "cmp"):
        with zipfile.ZipFile(packs / f"{side}.zip") as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        found = {
            str(path.relative_to(scratch / "out" / side)): path.read_bytes()
            for path in (scratch / "out" / side).rglob("*")
            if path.is_file()
        }
        harness.check_equal(f"files of {side}", found == members, True)


def check_repeated(msprobe, golden, scratch):
    """A second comparison into the same folder sees nothing of the first, and the same packs give the same bytes."""
    packs = golden / "packs"
    whole = [str(packs / "bench.zip"), str(packs / "cmp.zip")]
    harness.run(msprobe, ["config_check", "-c", *whole, "-o", "out"], scratch)
    first = (scratch / "out" / "result.xlsx").read_bytes()
    (scratch / "out" / "bench" / "weights" / "step9").mkdir()
    (scratch / "out" / "bench" / "weights" / "step9" / "stale.json").write_text("{}", encoding="utf-8")
    (scratch / "out" / "bench" / "notes.txt").write_text("mine", encoding="utf-8")
    harness.run(msprobe, ["config_check", "-j", "1", "-c", *whole, "-o", "out"], scratch)
    harness.check_equal("bytes", (scratch / "out" / "result.xlsx").read_bytes() == first, True)
    harness.check((scratch / "out" / "bench" / "notes.txt").exists(), "a file that is not ours was removed")
    harness.check(not (scratch / "out" / "bench" / "weights" / "step9").exists(), "a stale member is still there")
    good = str(golden / "zip_security" / "good.zip")
    harness.run(msprobe, ["config_check", "-c", good, good, "-o", "out"], scratch)
    left = sorted(str(path.relative_to(scratch / "out")) for path in (scratch / "out").rglob("*") if path.is_file())
    harness.check_equal("files", left, ["bench/env", "bench/notes.txt", "cmp/env", "result.xlsx"])


def check_formula(msprobe, golden, scratch):
    """A text that looks like a formula is text in a workbook, and has an apostrophe in csv."""
    for text in ("=1+1", "--lr", "@x", "+a", "%a", "\uff1d1", "1;=2"):
        files = ({f"hyperparameters/{STATIC}": {"a": text}}, {f"hyperparameters/{STATIC}": {"a": "x"}})
        compare(msprobe, scratch, *files, "--format", "xlsx,csv")
        book = sheets.read(scratch / "out" / "result.xlsx")
        harness.check_equal("text", book["hyperparameters"][1][3], text)
        harness.check_equal("mark", sheets.styles(scratch / "out" / "result.xlsx", 2)["D2"], ("FFFFC7CE", True))
        table = (scratch / "out" / "result_hyperparameters.csv").read_text(encoding="utf-8")
        harness.check(text not in table.replace("'" + text, ""), table)
        harness.check("'" in table, table)


def check_security(msprobe, golden, scratch):
    folder = golden / "zip_security"
    refused = {
        "traversal.zip": "leads outside the folder",
        "absolute.zip": "absolute",
        "symlink_member.zip": "symbolic link",
        "lying_declared_size.zip": "size",
        "notzip.zip": "not a zip archive",
    }
    for name, reason in refused.items():
        for pair in ([name, "good.zip"], ["good.zip", name]):
            result = harness.run(
                msprobe, ["config_check", "-c", *(str(folder / each) for each in pair), "-o", "out"], scratch
            )
            harness.check_equal(f"{name}: exit status", result.returncode, 2)
            harness.check(name in result.stderr and reason in result.stderr, result.stderr)
            harness.check_equal(f"{name}: left behind", list(scratch.rglob("*")), [])
    accepted = {
        "good.zip": (0, "pass", ""),
        "odd_names.zip": (0, "pass", "ignored 3 members"),
        "duplicate_member.zip": (0, "error", "duplicate member env"),
        "bad_json.zip": (2, "unreadable", "bad_json.zip: env: "),
        "env_is_list.zip": (2, "unreadable", "not a JSON object"),
        "env_is_dir.zip": (2, "unreadable", "env/: not a known member"),
    }
    for name, (status, section, message) in accepted.items():
        result = harness.run(
            msprobe, ["config_check", "-c", str(folder / name), str(folder / "good.zip"), "-o", name], scratch
        )
        harness.check_equal(f"{name}: exit status", result.returncode, status)
        harness.check(message in result.stderr, result.stderr)
        book = sheets.read(scratch / name / "result.xlsx")
        harness.check_equal(name, statuses(book)["env"], section)
    # The last of two counts.
    book = sheets.read(scratch / "duplicate_member.zip" / "result.xlsx")
    harness.check_equal("value", book["env"][1][2], "2")


def check_links(msprobe, golden, scratch):
    """Nothing is written through a link in the folder of the result."""
    good = str(golden / "packs" / "bench.zip")
    (scratch / "elsewhere").mkdir()
    for link in ("bench", "bench/weights", "bench/weights/step0"):
        shutil.rmtree(scratch / "out", ignore_errors=True)
        path = scratch / "out" / link
        path.parent.mkdir(parents=True)
        path.symlink_to(scratch / "elsewhere")
        harness.run(msprobe, ["config_check", "-c", good, good, "-o", "out"], scratch, status=2)
        harness.check_equal(f"{link}: elsewhere", list((scratch / "elsewhere").iterdir()), [])
    (scratch / "out2" / "bench").mkdir(parents=True)
    (scratch / "secret").write_text("secret", encoding="utf-8")
    (scratch / "out2" / "bench" / "env").symlink_to(scratch / "secret")
    harness.run(msprobe, ["config_check", "-c", good, good, "-o", "out2"], scratch, status=0)
    harness.check_equal("secret", (scratch / "secret").read_text(encoding="utf-8"), "secret")
    harness.check(not (scratch / "out2" / "bench" / "env").is_symlink(), "the link is still there")


def check_bombs(msprobe, golden, scratch):
    """More than a gigabyte in one member, or ten in all, is refused before it is unpacked."""
    with zipfile.ZipFile(scratch / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("env", "w", force_zip64=True) as member:
            block = b" " * (1 << 20)
            for _ in range(1025):
                member.write(block)
    good = str(golden / "zip_security" / "good.zip")
    result = harness.run(msprobe, ["config_check", "-c", "bomb.zip", good, "-o", "out"], scratch, status=2)
    harness.check("env unpacks to 1.1 GB" in result.stderr, result.stderr)
    harness.check(not (scratch / "out").exists(), "something was written")


def check_tables(msprobe, golden, scratch):
    bench = {"env": {"FOO": "1"}, "pip": "vllm=1\ntorch=2.1.0\nother=1\n", f"hyperparameters/{STATIC}": {"mbs": "1"}}
    cmp = {"env": {"FOO": "2"}, "pip": "vllm=2\ntorch=2.1.0+cpu\nother=2\n", f"hyperparameters/{STATIC}": {"micro": "2"}}
    (scratch / "tables.yaml").write_text(
        "environment: {FOO: {gpu: FOO}}\npackages: [vllm]\naliases: {micro_batch_size: [mbs, micro]}\n", encoding="utf-8"
    )
    compare(msprobe, scratch, bench, cmp, "--tables", "tables.yaml", "--all-packages")
    book = sheets.read(scratch / "out" / "result.xlsx")
    check_rows("env", book["env"][1:], [["FOO", "FOO", "1", "2", "error"]])
    rows = [["torch", "2.1.0", "2.1.0+cpu", "warning"], ["vllm", "1", "2", "error"], ["other", "1", "2", "warning"]]
    check_rows("pip", book["pip"][1:], rows)
    check_rows("names", book["hyperparameters"][1:], [[STATIC, "mbs", "micro", "1", "2", "mapping", "error"]])


def check_fail_on(msprobe, golden, scratch):
    good = {"env": {}}
    warning = {"env": {"ASCEND_X": "1"}}
    error = {"env": {"CUDA_LAUNCH_BLOCKING": "1"}}
    for cmp, level, status in (
        (good, "warning", 2), (warning, "error", 0), (warning, "warning", 1), (warning, "never", 0),
        (error, "error", 1), (error, "warning", 1), (error, "never", 0), ({"pip": ""}, "error", 1),
    ):
        result = compare(msprobe, scratch, good, cmp, "--fail-on", level)
        harness.check_equal(f"{cmp} {level}", result.returncode, status)


def check_stdout(msprobe, golden, scratch):
    packs = golden / "packs"
    words = ["config_check", "--comp", str(packs / "bench.zip"), str(packs / "cmp.zip"), "-o", "-"]
    result = harness.run(msprobe, words, scratch)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    harness.check_equal("summary", [line for line in lines if line["section"] == "summary"][0]["filename"], "env")
    expected = json.loads((packs / "result_sheets.json").read_text(encoding="utf-8"))
    for name in ("pip", "dataset", "weights", "random"):
        count = sum(line["section"] == name for line in lines)
        harness.check_equal(name, count, len(expected[name]) - 1)
    harness.check_equal("files", list(scratch.iterdir()), [])


def check_openpyxl(msprobe, golden, scratch):
    """The workbook as a program reads it that we did not write."""
    check_packs(msprobe, golden, scratch)
    script = (
        "import json, openpyxl\n"
        "book = openpyxl.load_workbook('out/result.xlsx')\n"
        "print(json.dumps({s.title: [[c.value for c in r] for r in s.iter_rows()] for s in book}))"
    )
    for python in ("python3", "/usr/bin/python3"):
        path = shutil.which(python)
        command = [path, "-c", script]
        result = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False) if path else None
        if result is not None and result.returncode == 0:
            expected = sheets.read(scratch / "out" / "result.xlsx")
            book = json.loads(result.stdout)
            harness.check_equal("sheets", list(book), list(expected))
            for name, rows in expected.items():
                check_rows(name, book[name], rows)
            return
    raise harness.Skip("no openpyxl")


def make_tests(msprobe, golden):
    golden = harness.data(golden, "config_check") / "config_check"
    edge = json.loads((golden / "edge_packs" / "cases.json").read_text(encoding="utf-8"))
    hyper = json.loads((golden / "hyper_compare" / "compare_param_cases.json").read_text(encoding="utf-8"))
    tests = []
    for name, case in edge.items():
        tests.append((f"edge pack: {name}", lambda s, n=name, c=case: check_edge(msprobe, n, c, s)))
    for name, case in hyper.items():
        tests.append((f"hyper-parameters: {name}", lambda s, n=name, c=case: check_hyper(msprobe, n, c, s)))
    tests += harness.tests_of_script(msprobe=msprobe, golden=golden)
    harness.check(len(edge) > 20 and len(hyper) > 15, "golden cases are missing")
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
