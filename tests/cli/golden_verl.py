#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads, compares and verifies verl logs (config_check -vc, -vv).

usage: golden_verl.py MSPROBE GOLDEN_FOLDER
"""

import json

import harness


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
    harness.check("needs two logs" in result.stderr, result.stderr)


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


def make_tests(msprobe, golden):
    golden = harness.data(golden, "config_check") / "config_check"
    names = [path.name.removesuffix(".json") for path in sorted((golden / "verl" / "expected").iterdir())]
    tests = [(f"verl log: {name}", lambda s, n=name: check_verl_log(msprobe, golden, n, s)) for name in names]
    tests.append(("verl compare", lambda s: check_verl_compare(msprobe, golden, s)))
    tests.append(("verl verify", lambda s: check_verl_verify(msprobe, golden, s)))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
