#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collects packs (config_check -d): scripts as bash runs them, but for conditions, YAML, the environment and the packages.

usage: golden_config_collect.py MSPROBE GOLDEN_FOLDER
"""

import json
import shutil
import stat
import subprocess
import zipfile

import harness

STATIC = "hyperparameters_static.json"

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
    "branches": """BACKEND=fsdp
if [ "$BACKEND" = megatron ]; then
  ARGS="--tp 4"
elif [[ $BACKEND == fsdp && -n "$BACKEND" ]]; then
  ARGS="--shard full"
else
  ARGS="--none"
fi
torchrun t.py $ARGS --lr 1""",
    "a branch that is not taken starts nothing": 'N=8\nif [ $N -gt 8 ]; then torchrun t.py --a 1; else torchrun t.py --a 2; fi',
    "nested branches": """A=1; B=2
if [ $A -eq 1 ]; then
  if [ $B -ne 2 ]; then X=wrong; elif ! [ $B -lt 2 ]; then X=right; fi
  if [ ! -z "$X" ]; then torchrun t.py --x $X; fi
else
  if [ 1 = 1 ]; then torchrun t.py --x never; fi
  torchrun t.py --y never
fi""",
    "selection": """MODEL=qwen-7b
case "$MODEL" in
  llama*) L=1 ;;
  *-13b|*-7[b]x|"*") L=2 ;;
  qwen-?b | other )
    L=3
    case $L in 3) M=4;; *) M=5;; esac ;;
  *) L=6 ;;
esac
torchrun t.py --l $L --m $M""".replace("|*-7[b]x", ""),
    "lists": """A=x; B= C= D= E= F=
[ "$A" = y ] && B="--b 1"
[ "$A" = x ] && C="--c 1" || C="--c 2"
[[ $A == y || ( $A == x && ! $A == z ) ]] && { D="--d 1"; E="--e 1"; }
[ "$A" = y ] || F="--f 1"
false && torchrun t.py --g 1
torchrun t.py $B $C $D $E $F""",
    "conditions of several commands": """A=1
if true && [ $A = 2 ] || [ "$A" = 1 ]; then X=1; fi
if false; [ $A = 1 ]; then Y=2; fi
if ! false; then Z=3; fi
if test $A = 1; then W=4; fi
torchrun t.py --x $X --y $Y --z $Z --w $W""",
    "branches in functions and loops": 'f() {\n  if [ 1 -le 0 ]; then A=1; else A=2; fi\n}\nf\nfor i in 1; do if [ $A = 2 ]; then torchrun t.py --a $A; fi; done',
    "words that only look like keywords": 'A="if then"\necho fi else >/dev/null\ntorchrun t.py --if then --case esac "fi" $A',
    "backslash in quotes": 'torchrun t.py --a "x\\\ny" --b "a\\b" --c \'a\\b\'',
    "tabs and carriage returns": "torchrun\tt.py\t--a\t1",
}

# The lines of conditions, loops and functions. The command does not evaluate them: it gives several values, bash's among them.
NOT_UNDERSTOOD = {
    "operators": [1],
    "functions": [1],
    "if and for": [1, 4],
    "case": [2],
    "branches": [2],
    "a branch that is not taken starts nothing": [2],
    "nested branches": [2, 3, 4, 6],
    "selection": [2, 7],
    "lists": [2, 3, 4, 5, 6],
    "conditions of several commands": [2, 3, 4, 5],
    "branches in functions and loops": [1, 2, 5],
    "s07_hash.sh": [3],
}
CERTAIN = {"s07_hash.sh"}
CERTAIN_OPTIONS = {"operators": ["b", "c"], "branches": ["lr"]}


def collect(msprobe, scratch, *words, **more):
    result = harness.run(msprobe, ["config_check", "-d", *words, "-o", "pack.zip", "--overwrite"], scratch, **more)
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
    """The commands that bash starts when it runs the script with nothing but stand-ins for the launchers."""
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


def several(value):
    return value["values"] if isinstance(value, dict) else [value]


def check_script(msprobe, name, script, scratch):
    if shutil.which("bash", path="/usr/bin:/bin") is None:
        raise harness.Skip("no bash")
    work = scratch / "work"
    work.mkdir()
    text = script.replace(b"\r\n", b"\n")  # bash takes the carriage returns for a part of the words
    # A pack keeps the names of variables that the script does not set.
    expected = {**run_in_bash(text, work), **SHELL_ONLY.get(name, {})}
    harness.check(expected, "bash started nothing")
    (scratch / "run.sh").write_bytes(script)
    result, members = collect(msprobe, scratch, "run.sh")
    harness.check_equal("exit status", result.returncode, 0)
    lines = NOT_UNDERSTOOD.get(name, [])
    notes = [line for line in result.stderr.splitlines() if "understood" in line]
    harness.check_equal("notes", notes, [f"msprobe: warning: run.sh: not understood: line {n}" for n in lines])
    ours = static_of(members)
    if not lines or name in CERTAIN:
        harness.check_equal("options", ours, expected)
        return
    harness.check(set(expected) <= set(ours), f"{set(expected) - set(ours)} are missing")
    for option, value in ours.items():
        told = several(value)
        missing = [one for one in several(expected.get(option)) if one not in told]
        harness.check(not missing, f"{option}: {missing} of bash are not among {told}")
        certain = option in CERTAIN_OPTIONS.get(name, ())
        harness.check_equal(f"{option} is certain", value == expected.get(option), certain)


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
        result = harness.run(msprobe, ["config_check", "-d", *words, "-o", "other.zip"], scratch, status=2)
        harness.check(reason in result.stderr, result.stderr)
        harness.check(not (scratch / "other.zip").exists(), "a pack was written")


def check_many_notes(msprobe, golden, scratch):
    (scratch / "a.sh").write_text("A=`b`\n" * 102 + "torchrun t.py --lr 1\n", encoding="utf-8")
    result, members = collect(msprobe, scratch, "a.sh")
    notes = [line.partition("a.sh: ")[2] for line in result.stderr.splitlines() if "understood" in line]
    harness.check_equal("last", notes[-2:], ["not understood: line 100", "not understood: 2 more lines"])
    harness.check_equal("number", len(notes), 101)
    harness.check_equal("options", static_of(members), {"lr": "1"})


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
    """The packages come from the files of a made-up environment; its interpreter would leave a trace if it ran."""
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


def make_tests(msprobe, golden):
    golden = harness.data(golden, "config_check") / "config_check"
    scripts = {path.name: path.read_bytes() for path in sorted((golden / "static_parse").glob("*.sh"))}
    scripts.update({name: text.encode() for name, text in SCRIPTS.items()})
    tests = []
    for name, script in scripts.items():
        tests.append((f"script: {name}", lambda s, n=name, t=script: check_script(msprobe, n, t, s)))
    tests += harness.tests_of_script(msprobe=msprobe, golden=golden)
    harness.check(len(scripts) > 40, "golden cases are missing")
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
