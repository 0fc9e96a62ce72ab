#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Properties of every command in the program's own list: help, unknown options, bad input, bad output.

usage: every_command.py MSPROBE DATA
"""

import json
import pathlib
import subprocess

import harness


PACKS = ("bench.zip", "cmp.zip")
SETS = ("anomaly", "ckpt", "compare", "config_check", "monitor", "parse", "prechecks", "visualize")


def arguments(command, inputs, data):
    """A command line that would work: `inputs` False gives inputs that do not exist."""
    golden = harness.data(f"{data}/golden", *SETS)
    compare = golden / "compare" / "stats_pairs"
    target, reference = (str(compare / side) if inputs else "missing/dump.json" for side in ("target", "golden"))
    lines = {"compare": ["-tp", target, "-gp", reference]}
    lines["parse"] = ["-d", str(golden / "parse" / "atb" / "in" / "ok") if inputs else "missing.bin"]
    lines["inspect"] = [str(compare / "target") if inputs else "missing.pt"]
    merged = golden / "compare" / "merge_result"
    lines["merge_result"] = [
        *("-i", str(merged / "input") if inputs else "missing/input"),
        *("-o", "output", "-config", str(merged / "config_all.yaml")),
    ]
    prechecks = golden / "prechecks" / "precision_compare" / "in"
    lines["api_precision_compare"] = [
        *("-npu", str(prechecks / "main_npu.csv") if inputs else "missing/npu.csv"),
        *("-gpu", str(prechecks / "main_gpu.csv"), "-o", "output"),
    ]
    packs = golden / "config_check" / "packs"
    lines["config_check"] = ["-c", *(str(packs / name) if inputs else f"missing/{name}" for name in PACKS)]
    checkpoints = golden / "ckpt" / "checkpoints"
    first = str(checkpoints / "tp1pp1") if inputs else "missing/tp1pp1"
    lines["ckpt_compare"] = [first, str(checkpoints / "tp2pp2")]
    step = golden / "anomaly" / "cases" / "a02_before_comm_one_rank" / "step0"
    for name in ("nan_analyze", "overflow_check"):
        lines[name] = ["-i", str(step) if inputs else "missing/step0"]
    tree = golden / "visualize" / "cases" / "tree" / "target"
    for name in ("graph", "graph_visualize"):
        lines[name] = ["-tp", str(tree) if inputs else "missing/rank0", "-o", "output"]
    gradients = golden / "monitor" / "grad_probe"
    lines["grad_compare"] = [str(gradients / "L1_a") if inputs else "missing/L1_a", str(gradients / "L1_b"), "-o", "output"]
    graph = f"{data}/code_mapping"
    lines["code_mapping"] = ["--ir", f"{graph}/net.ir" if inputs else "missing/net.ir", "--dump_data", f"{graph}/dump", "-o", "output"]
    dump = golden / "prechecks" / "acc_check" / "dump_tensor" / "dump.json"
    lines["op_generate"] = [*(["-api_info", str(dump)] if inputs else ["-api_info", "missing/dump.json"]), "--api",
                            "Functional.linear.0", "-o", "output"]
    for name in ("acc_check", "multi_acc_check", "run_ut", "multi_run_ut"):
        lines[name] = ["-api_info", str(dump) if inputs else "missing/dump.json", "-o", "output"]
    lines["run_overflow_check"] = ["-api_info", str(dump) if inputs else "missing/dump.json"]
    lines["docs"] = ["commands" if inputs else "missing"]
    monitor = golden / "monitor"
    lines["monitor analyze"] = ["-d", str(monitor / "analyse" / "anomaly_detected") if inputs else "missing", "-o", "output"]
    series = str(monitor / "trend" / "in" / "monitor") if inputs else "missing"
    lines["monitor alerts"] = ["-d", str(monitor / "trend" / "in" / "monitor") if inputs else "missing", "--rule", "AnomalyNan"]
    lines["monitor compare"] = [series, series, "-o", "output/series.csv"]
    lines["monitor report"] = [series, "-o", "output/report.html"]
    lines["monitor csv2tb"] = ["-d", series, "-o", "output"]
    lines["monitor csv2db"] = lines["data2db"] = ["--data", series, "--db", "output"]
    harness.check(command in lines, f"say here how '{command}' is called")
    return [*command.split(), *lines[command]]


def names_of(entry):
    return {name for option in entry["options"] for name in option["names"]}


def make_tests(msprobe, data):
    program = json.loads(harness.run(msprobe, ["__options"], ".").stdout)
    tests = []

    def add(name, function):
        tests.append((name, function))

    def program_help(scratch):
        result = harness.run(msprobe, [], scratch, status=0)
        harness.check_equal("stderr", result.stderr, "")
        for command in program["commands"]:
            harness.check(f"\n  {command['name']} " in result.stdout, f"{command['name']} is not listed")
        for flag in ("-h", "--help"):
            harness.check_equal(flag, harness.run(msprobe, [flag], scratch).stdout, result.stdout)

    add("msprobe alone shows its help", program_help)

    for entry in program["commands"]:
        command = entry["name"]

        def command_help(scratch, command=command, summary=entry["summary"]):
            result = harness.run(msprobe, [*command.split(), "-h"], scratch, status=0)
            harness.check_equal("stderr", result.stderr, "")
            harness.check(f"msprobe {command}" in result.stdout and summary in result.stdout, result.stdout)
            harness.check_equal("-h first", harness.run(msprobe, ["-h", *command.split()], scratch).stdout, result.stdout)
            harness.check_equal("files", list(scratch.iterdir()), [])

        def unknown_option(scratch, command=command):
            for option in ("--no-such-option", "-Z", "-zzz", "--no-such-option=1"):
                result = harness.run(msprobe, [*command.split(), option], scratch)
                harness.check_refused(result, "unknown option", option.split("=")[0])

        def stray_argument(scratch, command=command):
            harness.check_refused(harness.run(msprobe, [*command.split(), "stray"], scratch), "stray")

        def no_arguments(scratch, command=command):
            if command == "docs":
                raise harness.Skip("it lists the pages")
            harness.check_refused(harness.run(msprobe, command.split(), scratch))

        def missing_input(scratch, command=command):
            if command == "bisect":
                raise harness.Skip("programs make its input (tests/python/check_test.py)")
            harness.check_refused(harness.run(msprobe, arguments(command, False, data), scratch), "missing")
            harness.check(not list(scratch.rglob("*.*")), "files were written")

        def unwritable_output(scratch, command=command, names=names_of(entry)):
            if "-o" not in names or command == "bisect":
                raise harness.Skip("it writes no files")
            # A folder below a file cannot be made, not even by root.
            (scratch / "file").write_text("", encoding="utf-8")
            result = harness.run(msprobe, [*arguments(command, True, data), "-o", "file/below"], scratch)
            harness.check_refused(result, "file")

        def full_output(scratch, command=command):
            if not pathlib.Path("/dev/full").exists():
                raise harness.Skip("no /dev/full")
            with open("/dev/full", "w", encoding="utf-8") as full:
                words = [msprobe, *command.split(), "--help"]
                result = subprocess.run(words, cwd=scratch, stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                        env=harness.environment(msprobe, scratch))
            harness.check_equal("exit status", result.returncode, 2)
            harness.check_equal("stderr", result.stderr, "msprobe: error: standard output: cannot be written: No space left on device\n")

        add(f"{command}: -h", command_help)
        add(f"{command}: unknown option", unknown_option)
        add(f"{command}: stray argument", stray_argument)
        add(f"{command}: no arguments", no_arguments)
        add(f"{command}: missing input", missing_input)
        add(f"{command}: unwritable output", unwritable_output)
        add(f"{command}: full disk", full_output)
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
