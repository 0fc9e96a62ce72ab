#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs config_check on the golden cases. What the Python tool gives is expected, but for the cases named here, which
say what is right instead; docs/differences.md has the reasons.

usage: golden_config_check.py MSPROBE GOLDEN_FOLDER
"""

import json
import math
import pathlib
import shutil
import stat
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

# Scripts that bash runs as we read them, but for what only a running shell knows, and for a block that is used before
# it is assigned, which the Python tool and we expand all the same.
SHELL_ONLY = {"s07_hash.sh": {"n": "${#ARR[@]}"}, "s14_nested_blocks_reverse.sh": {"a": "1"}}
# Files of which the Python tool makes the right thing.
YAML_LIKE_PYTHON = ["y01_types.yaml", "y03_anchor.yaml", "y05_list_root.yaml", "y07_empty.yaml"]
YAML_OTHERWISE = {"y02_int_key.yaml": {"lr": 1, "layers.0": "a", "layers.1": "b", "after": 2}}
YAML_REFUSED = {"y04_bad.yaml": "line 2", "y06_multi_doc.yaml": "second document"}
LAUNCHERS = ["torchrun", "msrun", "deepspeed", "mpirun", "accelerate"]
PYTHONS = ["python", "python3"]

STUB = """#!/bin/bash
{ printf '%s\\0' "${0##*/}" "$@"; printf '\\n\\0'; } >>"$RECORD"
"""

# Scripts beyond the golden ones, whose oracle is bash alone.
SCRIPTS = {
    "plus and defaults": 'A=1; A+=2\nB=${C:-x y}\ntorchrun t.py --a $A --b "$B" --c $B --d ${A:+set} --e "${D:-}" --f',
    "nested defaults": 'torchrun t.py --a ${A:-${B:-deep}} --b "${A-"quoted \' text"}" --c ${A:=later}',
    "defaults are split": 'B="x y"\nC=1\ntorchrun t.py --a ${C:+$B} --b "${C:+$B}" --c ${U:-$B}',
    "quotes": """torchrun t.py --a 'it'"'"'s' --b "x\\"y" --c a\\ b --d $'t\\tab' --e ""''""",
    "arrays": 'A=(--x 1 "two words")\nA+=(--y\n  2 # a comment\n)\nB=(${A[@]:0} )\ntorchrun t.py "${A[@]}" --z ${A[1]} --all "${A[*]}"'
    .replace("B=(${A[@]:0} )\n", ""),
    "heredoc": 'cat <<EOF >/dev/null\ntorchrun no.py --no 1\nEOF\ncat <<-\'END\' >/dev/null\n\ttorchrun no.py --no 2\n\tEND\ntorchrun t.py --yes 3',
    "redirections": "torchrun t.py --a 1 2>&1 >/dev/null --b 2 2>/dev/null </dev/null --c 3",
    "operators": "true && torchrun t.py --a 1; false || torchrun u.py --a 2\n(torchrun v.py --b 3); { torchrun w.py --c 4; }",
    "functions": "run() {\n  local X=5\n  torchrun t.py --x $X \"$@\"\n}\nrun".replace(' "$@"', ""),
    "if and for": 'if true; then\n  LR=1\nfi\nfor i in 1; do torchrun t.py --lr $LR; done',
    "wrappers": "CUDA_X=1 env Y=2 torchrun t.py --a 1\neval torchrun u.py --b 2\nARGS=\"--c 3\"\nCMD=\"torchrun v.py $ARGS\"\neval $CMD",
    "comments": "torchrun t.py --a b#c --d '#e' # --f g\n#torchrun u.py --h i\ntorchrun v.py \\\n  --j k \\\n  # the end\n",
    "hydra": "python3 -m verl.trainer.main_ppo data.size=4 +actor.lr=1e-6 'data.files=[\"a\",\"b\"]' --config x",
    "plain python is second": "python prepare.py --a 1\ntorchrun t.py --b 2",
    "modules": "python -m pip install x --quiet\npython -m torch.distributed.launch --nproc 2 t.py --lr 1",
    "same option twice": "torchrun t.py --lr 1\ntorchrun t.py --lr 2\ntorchrun t.py --lr 1",
    "split blanks": 'A="  --x   1\n --y 2  "\ntorchrun t.py $A --z "$A"',
    "unquoted empty": 'E=\ntorchrun t.py --a $E --b "$E" --c $E$E x',
    "self reference": "P=/a:$P\nP=/b:$P\ntorchrun t.py --p $P",
    "case": 'MODE=x\ncase $MODE in\n  x) torchrun t.py --a 1 ;;\nesac',
    "backslash in quotes": 'torchrun t.py --a "x\\\ny" --b "a\\b" --c \'a\\b\'',
    "tabs and carriage returns": "torchrun\tt.py\t--a\t1",
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
    # The members lie beside the workbook, byte for byte.
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
    """What looks like a formula is text in a workbook, and has an apostrophe in csv."""
    for text in ("=1+1", "--lr", "@x", "+a", "%a", "＝1", "1;=2"):
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
        "traversal.zip": "leads out of the folder",
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
        "odd_names.zip": (0, "pass", "3 members ignored"),
        "duplicate_member.zip": (0, "error", "more than once"),
        "bad_json.zip": (2, "unreadable", "bad_json.zip: env: "),
        "env_is_list.zip": (2, "unreadable", "not a JSON object"),
        "env_is_dir.zip": (2, "unreadable", "env/: not a member"),
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
    """Nothing is written through a link that lies in the folder of the result."""
    good = str(golden / "packs" / "bench.zip")
    (scratch / "elsewhere").mkdir()
    for link in ("bench", "bench/weights", "bench/weights/step0"):
        shutil.rmtree(scratch / "out", ignore_errors=True)
        path = scratch / "out" / link
        path.parent.mkdir(parents=True)
        path.symlink_to(scratch / "elsewhere")
        result = harness.run(msprobe, ["config_check", "-c", good, good, "-o", "out"], scratch)
        harness.check_equal(f"{link}: exit status", result.returncode, 2)
        harness.check_equal(f"{link}: elsewhere", list((scratch / "elsewhere").iterdir()), [])
    (scratch / "out2" / "bench").mkdir(parents=True)
    (scratch / "secret").write_text("secret", encoding="utf-8")
    (scratch / "out2" / "bench" / "env").symlink_to(scratch / "secret")
    result = harness.run(msprobe, ["config_check", "-c", good, good, "-o", "out2"], scratch)
    harness.check_equal("exit status", result.returncode, 0)
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
    result = harness.run(msprobe, ["config_check", "-c", "bomb.zip", good, "-o", "out"], scratch)
    harness.check_equal("exit status", result.returncode, 2)
    harness.check("env unpacks to 1.1 GB" in result.stderr, result.stderr)
    harness.check(not (scratch / "out").exists(), "something was written")


def collect(msprobe, scratch, *words, **more):
    result = harness.run(msprobe, ["config_check", "-d", *words, "-o", "pack.zip"], scratch, **more)
    members = {}
    if (scratch / "pack.zip").exists():
        with zipfile.ZipFile(scratch / "pack.zip") as archive:
            members = {name: archive.read(name).decode("ascii") for name in archive.namelist()}
    return result, members


def static_of(members):
    return json.loads(members.get(f"hyperparameters/{STATIC}", "{}"))


def check_yaml(msprobe, golden, scratch):
    expected = json.loads((golden / "static_parse" / "expected.json").read_text(encoding="utf-8"))
    wanted = {name: expected[name] for name in YAML_LIKE_PYTHON} | YAML_OTHERWISE
    names = {path.name for path in (golden / "static_parse").glob("*.yaml")}
    harness.check_equal("cases", names, set(wanted) | set(YAML_REFUSED))
    for name, values in wanted.items():
        result, members = collect(msprobe, scratch, str(golden / "static_parse" / name))
        harness.check_equal(f"{name}: exit status", result.returncode, 0)
        ours = static_of(members)
        harness.check_equal(name, repr(ours), repr(values))  # repr tells 1 from True and 1.0
    for name, reason in YAML_REFUSED.items():
        result, members = collect(msprobe, scratch, str(golden / "static_parse" / name))
        harness.check_equal(f"{name}: exit status", result.returncode, 2)
        harness.check(name in result.stderr and reason in result.stderr, result.stderr)
        harness.check_equal(f"{name}: members", list(members), ["env", "pip"])


def options_of(words):
    """An independent reading of a command: what the words after the program mean."""
    options = {}
    key = None
    program = False
    skip = False
    for i, word in enumerate(words[1:], 1):
        if skip:
            skip = False
            continue
        number = False
        try:
            float(word)
            number = True
        except ValueError:
            pass
        if word.startswith("--") and len(word) > 2:
            name, equals, value = word[2:].partition("=")
            options.pop(name, None)
            options[name] = [value] if equals else []
            key = None if equals else name
        elif word.startswith("-") and len(word) > 1 and not number:
            key = None
            if word == "-m" and not program:
                program = not words[i + 1].startswith("torch.distributed.")
                skip = True
        elif not program and word.endswith(".py"):
            program, key = True, None
        elif key is not None:
            options[key].append(word)
        elif program and "=" in word:
            name, _, value = word.partition("=")
            options[name.lstrip("+")] = [value]
    return {name: True if not v else v[0] if len(v) == 1 else v for name, v in options.items()}


def run_in_bash(script, scratch):
    """What bash starts when it runs the script with nothing but stand-ins for the launchers."""
    stubs = scratch / "stubs"
    stubs.mkdir(exist_ok=True)
    for name in LAUNCHERS + PYTHONS:
        stub = stubs / name
        stub.write_text(STUB, encoding="utf-8")
        stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    for name in ("cat", "env", "tee", "grep"):
        if not (stubs / name).exists():
            (stubs / name).symlink_to(shutil.which(name, path="/usr/bin:/bin"))
    record = scratch / "record"
    record.write_bytes(b"")
    (scratch / "script.sh").write_bytes(script)
    bash = shutil.which("bash", path="/usr/bin:/bin")
    environment = {"PATH": str(stubs), "RECORD": str(record), "NOPE": "$NOPE", "P": "$P"}
    subprocess.run(
        [bash, str(scratch / "script.sh")],
        cwd=stubs,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=harness.TIME_LIMIT_S,
        check=False,
    )
    commands = []
    for command in record.read_bytes().decode("utf-8").split("\n\0")[:-1]:
        commands.append(command.split("\0")[:-1])
    module = "torch.distributed."
    other = ("pip", "venv")
    distributed = [c for c in commands if c[0] in LAUNCHERS or (c[1:2] == ["-m"] and c[2].startswith(module))]
    plain = [c for c in commands if c not in distributed and not (c[1:2] == ["-m"] and c[2] in other)]
    merged = {}
    for command in distributed or plain:
        for name, value in options_of(command).items():
            if name not in merged:
                merged[name] = [value]
            elif value not in merged[name]:
                merged[name].append(value)
    duplicate = {"description": "duplicate_value"}
    return {name: v[0] if len(v) == 1 else {**duplicate, "values": v} for name, v in merged.items()}


def check_script(msprobe, name, script, scratch):
    if shutil.which("bash", path="/usr/bin:/bin") is None:
        raise harness.Skip("no bash")
    work = scratch / "work"
    work.mkdir()
    text = script.replace(b"\r\n", b"\n")  # bash takes the carriage returns for a part of the words
    # Variables that nobody sets stand for themselves in a pack.
    expected = {**run_in_bash(text, work), **SHELL_ONLY.get(name, {})}
    harness.check(expected, "bash started nothing")
    (scratch / "run.sh").write_bytes(script)
    result, members = collect(msprobe, scratch, "run.sh")
    harness.check_equal("exit status", result.returncode, 0)
    harness.check_equal("options", static_of(members), expected)


def check_several(msprobe, golden, scratch):
    (scratch / "a.sh").write_text("torchrun t.py --lr 1 --bs 4\n", encoding="utf-8")
    (scratch / "b.yaml").write_text("lr: '2'\nbs: '4'\nnew: 1\n", encoding="utf-8")
    (scratch / "c.yml").write_text("lr: '1'\n", encoding="utf-8")
    (scratch / "d.yaml").write_text("lr: '3'\n", encoding="utf-8")
    result, members = collect(msprobe, scratch, "a.sh", "b.yaml", "missing.sh", "c.yml", "d.yaml")
    harness.check_equal("exit status", result.returncode, 2)  # one file is missing
    harness.check("missing.sh" in result.stderr, result.stderr)
    both = {"description": "duplicate_value", "values": ["1", "2", "3"]}
    harness.check_equal("merged", static_of(members), {"lr": both, "bs": "4", "new": 1})
    for words, reason in ((["x.txt"], "x.txt"), (["a.sh"] * 101, "at most 100")):
        (scratch / "x.txt").write_text("", encoding="utf-8")
        result = harness.run(msprobe, ["config_check", "-d", *words, "-o", "other.zip"], scratch)
        harness.check_equal("exit status", result.returncode, 2)
        harness.check(reason in result.stderr, result.stderr)
        harness.check(not (scratch / "other.zip").exists(), "a pack was written")


def check_environment(msprobe, golden, scratch):
    secrets = {"HF_TOKEN": "t0", "aws_secret_access_key": "s1", "MY_PASSWD": "p2", "OPENAI_API_KEY": "k3", "X_PASSWORD_Y": "w4"}
    plain = {"HTTP_PROXY": "http://me:s5@host:1/", "NCCL_ALGO": "Ring", "ODD": "a\"\\\n\u00e9\u4e2d"}
    result, members = collect(msprobe, scratch, env={**secrets, **plain})
    harness.check_equal("exit status", result.returncode, 0)
    environment = json.loads(members["env"])
    for name in secrets:
        harness.check_equal(name, environment[name], "******")
    harness.check_equal("proxy", environment["HTTP_PROXY"], "http://me:******@host:1/")
    harness.check_equal("text", environment["ODD"], plain["ODD"])
    harness.check_equal("HOME", environment["HOME"], str(scratch))
    everything = "".join(members.values())
    for value in secrets.values():
        harness.check(f'"{value}"' not in everything, "a secret is in the pack")
    with zipfile.ZipFile(scratch / "pack.zip") as archive:
        for entry in archive.infolist():
            harness.check_equal("mode", oct(entry.external_attr >> 16), "0o600")
            harness.check_equal("date", entry.date_time, (1980, 1, 1, 0, 0, 0))
    # Written afresh, never appended to; only what is compared if that is asked for.
    result, members = collect(msprobe, scratch, "--env-table-only", env={**plain, "ASCEND_X": "1"})
    harness.check_equal("members", list(members), ["env", "pip"])
    harness.check_equal("env", json.loads(members["env"]), {"NCCL_ALGO": "Ring", "ASCEND_X": "1"})
    (scratch / "tables.yaml").write_text("secrets: [algo]\nenvironment:\n  FOO: {gpu: FOO, gpu_default: 1}\n", encoding="utf-8")
    result, members = collect(
        msprobe, scratch, "--env-table-only", "--tables", "tables.yaml", env={**plain, "FOO": "2", "BAR": "3"}
    )
    harness.check_equal("env", json.loads(members["env"]), {"NCCL_ALGO": "******", "FOO": "2"})


def check_interpreter(msprobe, golden, scratch):
    """Packages are told from the files of a made-up environment; its interpreter would leave a trace if it ran."""
    site = scratch / "venv" / "lib" / "python3.9" / "site-packages"
    site.mkdir(parents=True)
    (scratch / "venv" / "bin").mkdir()
    (scratch / "venv" / "pyvenv.cfg").write_text("home = /nowhere/bin\nversion = 3.9.1\n", encoding="utf-8")
    python = scratch / "venv" / "bin" / "python3"
    python.write_text(f"#!/bin/sh\ntouch {scratch}/it_ran\n", encoding="utf-8")
    python.chmod(0o755)
    for folder, metadata in (
        ("torch_npu-2.1.0.dist-info", "Metadata-Version: 2.1\nName: torch-npu\nVersion: 2.1.0\n\nName: not this\n"),
        ("NumPy-1.0.dist-info", "Name: NumPy\nVersion: 1.0\n"),
        ("numpy-2.0.dist-info", "Name: numpy\nVersion: 2.0\n"),
        ("broken.dist-info", "nothing\n"),
    ):
        (site / folder).mkdir()
        (site / folder / "METADATA").write_text(metadata, encoding="utf-8")
    (site / "empty.dist-info").mkdir()
    (site / "old.egg-info").write_text("Name: old\nVersion: 0.1\n", encoding="utf-8")
    (site / "egg-1.egg" / "EGG-INFO").mkdir(parents=True)
    (site / "egg-1.egg" / "EGG-INFO" / "PKG-INFO").write_text("Name: egg\nVersion: 1\n", encoding="utf-8")
    result, members = collect(msprobe, scratch, "--python", str(python))
    harness.check_equal("exit status", result.returncode, 0)
    harness.check_equal("pip", members["pip"], "NumPy=1.0\negg=1\nold=0.1\ntorch-npu=2.1.0\n")
    harness.check(str(python) in result.stderr and "3.9" in result.stderr, result.stderr)
    harness.check(not (scratch / "it_ran").exists(), "the interpreter was executed")


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
        (good, "warning", 0), (warning, "error", 0), (warning, "warning", 1), (warning, "never", 0),
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


def verl(msprobe, scratch, *words):
    return harness.run(msprobe, ["config_check", *words, "-o", "out"], scratch)


def check_verl_log(msprobe, golden, name, scratch):
    folder = golden / "verl"
    expected = json.loads((folder / "expected" / f"{name}.json").read_text(encoding="utf-8"))
    if name == "no_prefix.log":  # that of the run with a prefix
        expected = json.loads((folder / "expected" / "bench.txt.json").read_text(encoding="utf-8"))
    if name == "json_line.log":
        expected = {"actor_rollout_ref": {"a": True, "b": None}}
    result = verl(msprobe, scratch, "-vv", str(folder / name))
    if "raises" in expected:
        harness.check_equal("exit status", result.returncode, 2)
        reason = expected["raises"].split(": ", 1)[1]
        harness.check(reason in result.stderr, result.stderr)
        harness.check_equal("left behind", list(scratch.rglob("*")), [])
        return
    harness.check_equal("exit status", result.returncode, 0)
    ours = json.loads((scratch / "out" / "tgt_config.json").read_text(encoding="utf-8"))
    harness.check_equal("configuration", repr(ours), repr(expected))


def check_verl_compare(msprobe, golden, scratch):
    folder = golden / "verl"
    result = verl(msprobe, scratch, "-vc", str(folder / "npu.log"), str(folder / "bench.txt"), "--fail-on", "error")
    harness.check_equal("exit status", result.returncode, 1)
    for path in sorted((folder / "expected_vc").iterdir()):
        harness.check_equal(path.name, (scratch / "out" / path.name).read_bytes(), path.read_bytes())
    # A Boolean is no number, ray_ is a prefix of a name and not of any text.
    (scratch / "a.log").write_text("{'actor_rollout_ref': {'b': True, 'array_len': 1, 'n': 1.0}, 'ray_init': {'x': 1}}")
    (scratch / "b.log").write_text("{'actor_rollout_ref': {'b': 1, 'array_len': 2, 'n': 1}, 'ray_init': {'x': 2}}")
    verl(msprobe, scratch, "-vc", "a.log", "b.log")
    lines = (scratch / "out" / "hyper_params_compare.csv").read_text(encoding="utf-8-sig").splitlines()
    harness.check_equal("rows", lines[1:], [
        "actor_rollout_ref/array_len,1,2,否", "actor_rollout_ref/b,True,1,否", "actor_rollout_ref/n,1.0,1,是",
    ])
    result = verl(msprobe, scratch, "-vc", str(folder / "npu.log"), str(folder / "bench_custom.yaml"))
    harness.check_equal("exit status", result.returncode, 2)
    harness.check("require two log files" in result.stderr, result.stderr)


def check_verl_verify(msprobe, golden, scratch):
    folder = golden / "verl"
    verl(msprobe, scratch, "-vv", str(folder / "bench_custom.yaml"), str(folder / "npu.log"))
    text = (scratch / "out" / "hyper_params_verify.csv").read_text(encoding="utf-8")
    harness.check_equal("csv", text.splitlines(), [
        "\ufeff关键参数名称,bench生效值,target生效值,是否一致",
        "actor_rollout_ref/actor/lr,1e-06,1e-06,是",
        "actor_rollout_ref/actor/clip_ratio,0.2,0.2,是",
        "actor_rollout_ref/actor/missing_key,1,NA,否",
        "actor_rollout_ref/rollout/name,'vllm','vllm',是",
        "trainer/logger,['console'],['console'],是",
    ])
    verl(msprobe, scratch, "-vv", str(folder / "npu.log"))
    rows = (scratch / "out" / "hyper_params_verify.csv").read_text(encoding="utf-8-sig").splitlines()
    harness.check_equal("built-in keys", len(rows), 18)
    harness.check("VLLM_ASCEND_ENABLE_NZ,0,NA,否" in rows, rows)
    harness.check("actor_rollout_ref/actor/load_weight,True,True,是" in rows, rows)
    log, keys = str(folder / "npu.log"), str(folder / "bench_custom.yaml")
    for words, reason in (([log] * 3, "up to two files, but received 3 files"), ([keys], "needs a log"),
                          ([log, keys], "the log last"), ([str(folder / "README")], ".log or .txt")):
        result = verl(msprobe, scratch, "-vv", *words)
        harness.check_equal("exit status", result.returncode, 2)
        harness.check(reason in result.stderr, result.stderr)


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
    golden = pathlib.Path(golden).resolve() / "config_check"
    edge = json.loads((golden / "edge_packs" / "cases.json").read_text(encoding="utf-8"))
    hyper = json.loads((golden / "hyper_compare" / "compare_param_cases.json").read_text(encoding="utf-8"))
    tests = []
    for name, case in edge.items():
        tests.append((f"edge pack: {name}", lambda s, n=name, c=case: check_edge(msprobe, n, c, s)))
    for name, case in hyper.items():
        tests.append((f"hyper-parameters: {name}", lambda s, n=name, c=case: check_hyper(msprobe, n, c, s)))
    scripts = {path.name: path.read_bytes() for path in sorted((golden / "static_parse").glob("*.sh"))}
    scripts.update({name: text.encode() for name, text in SCRIPTS.items()})
    for name, script in scripts.items():
        tests.append((f"script: {name}", lambda s, n=name, t=script: check_script(msprobe, n, t, s)))
    for path in sorted((golden / "verl" / "expected").iterdir()):
        name = path.name.removesuffix(".json")
        tests.append((f"verl log: {name}", lambda s, n=name: check_verl_log(msprobe, golden, n, s)))
    for function in (
        check_packs, check_openpyxl, check_repeated, check_formula, check_security, check_links, check_bombs, check_yaml,
        check_several, check_environment, check_interpreter, check_tables, check_fail_on, check_stdout,
        check_verl_compare, check_verl_verify,
    ):
        title = function.__name__.removeprefix("check_").replace("_", " ")
        tests.append((title, lambda s, f=function: f(msprobe, golden, s)))
    harness.check(len(edge) > 20 and len(hyper) > 15 and len(scripts) > 40, "golden cases are missing")
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
