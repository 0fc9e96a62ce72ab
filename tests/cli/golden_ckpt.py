#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ckpt_compare on the golden checkpoints. The answer is the correct one of their README; where the Python tool's
is correct too, its numbers are ours within 1e-5.

Then the checkpoints of one model that PyTorch, safetensors and Megatron wrote themselves, each against each.

usage: golden_ckpt.py MSPROBE DATA_FOLDER
"""

import csv
import itertools
import json
import math
import pathlib

import harness

ALL = 31  # parameters of the small dense model
EXPERTS = 18

# first, second, parameters in both (all of them the same), and what stands on one side only
IDENTICAL = [
    ("tp1pp1", "tp1pp1", ALL, [], []),
    ("gelu_tp1pp1", "gelu_tp2pp2", ALL, [], []),
    ("tp1pp1", "tp2pp1", ALL, [], []),
    ("tp1pp1", "tp2pp2", ALL, [], []),
    ("tp1pp1", "tp1pp2vpp2", ALL, [], []),
    ("tp1pp1", "tp1pp2_uneven", ALL, [], []),
    ("tp1pp1", "tp1pp3_uneven", ALL, [], []),
    ("tp1pp1", "te_tp1pp1", ALL, [], []),
    ("te_tp1pp1", "te_tp2pp1", ALL, [], []),
    ("tp1pp1", "extra_state_tp2", ALL, [], ["rotary_pos_emb.inv_freq", "step"]),
    ("tp1pp1", "legacy_tp1pp1", ALL, [], []),
    ("tied_pp1", "tied_pp2", ALL - 1, [], []),
    ("moe_ep1", "moe_ep2", EXPERTS, [], []),
    ("moe_ep1", "moe_ep2pp2", EXPERTS, [], []),
    ("moe_te_ep1", "moe_te_ep2", EXPERTS, [], []),
    ("tp1pp1", "legacy_fmt", ALL, [], []),
    ("tp1pp1", "grad_param", ALL, [], []),
    ("tp1pp1", "slash_name", ALL, [], ["a/b"]),
    ("tp1pp1", "args_no_ep", ALL, [], []),
    ("tp1pp1", "no_args", ALL, [], []),
    ("tp1pp1", "release_dir", ALL, [], []),
    ("tp1pp1", "release_dir/release", ALL, [], []),
    ("tp1pp1", "torch_dist_synthetic", ALL, [], []),
    ("tp2pp2", "torch_dist_synthetic", ALL, [], []),
    ("malicious", "malicious", 1, [], []),
]

# Pairs whose numbers the Python tool has right, all or all but the ones named with the right numbers.
NUMBERS = {
    "tp1pp1__tp1pp1_other": {},
    "tp1pp1__tp1pp2_uneven": {},
    "gelu_tp1pp1__gelu_tp2pp2": {},
    "moe_ep1__moe_ep2pp2": {},
    "metrics_a__metrics_b": {
        "tiny": {"l2": 2.0000000063421537e-30, "cos": 1.0},
        "overflow_fp32": {"l2": 4.000000060189865e30, "cos": -1.0},
        "int64": {"l2": 1.0, "cos": 1.0},
        "f64": {"l2": 1.000000082740371e-09, "cos": 1.0},
    },
}


def compare(msprobe, data, first, second, scratch, *options):
    folder = harness.data(data, "golden/ckpt") / "golden" / "ckpt" / "checkpoints"
    words = ["ckpt_compare", str(folder / first), str(folder / second), *options]
    return harness.run(msprobe, [*words, "--details", "details.csv"], scratch)


def details(scratch):
    with open(scratch / "details.csv", encoding="utf-8", newline="") as file:
        return {row["Name"]: row for row in csv.DictReader(file)}


def similarity(scratch):
    return json.loads((scratch / "ckpt_similarity.json").read_text(encoding="ascii"))


def check_identical(msprobe, data, case, scratch):
    first, second, common, only_first, only_second = case
    result = compare(msprobe, data, first, second, scratch, "--fail-on", "different")
    # A table of positions is computed from the configuration; what else one side alone has is a difference.
    alone = [name for name in only_first + only_second if not name.endswith("inv_freq")]
    harness.check_equal("exit status", result.returncode, int(bool(alone)))
    rows = details(scratch)
    equal = sorted(name for name, row in rows.items() if row["Status"] == "equal")
    harness.check_equal("equal", len(equal), common)
    for status, names in (("only in the first", only_first), ("only in the second", only_second)):
        harness.check_equal(status, sorted(n for n, row in rows.items() if row["Status"] == status), names)
    written = similarity(scratch)
    harness.check_equal("names", sorted(written), equal)
    for name, entry in written.items():
        harness.check_equal(name, [entry["l2"], entry["cos"]], [0.0, 1.0])
        harness.check_equal("keys", list(entry), ["l2", "cos", "numel", "shape"])
        harness.check_equal("numel", entry["numel"], math.prod(entry["shape"]))


def same_number(ours, theirs):
    if theirs is None or ours is None:
        return ours is theirs
    if math.isnan(theirs) or math.isinf(theirs):
        return repr(ours) == repr(theirs)
    return math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-7)


def check_numbers(msprobe, data, pair, corrected, scratch):
    first, second = pair.split("__")
    result = compare(msprobe, data, first, second, scratch)
    harness.check_equal("exit status", result.returncode, 0)
    path = harness.data(data, "golden/ckpt") / "golden" / "ckpt" / "python_result" / f"{pair}.json"
    expected = json.loads(path.read_text(encoding="utf-8"))
    ours = similarity(scratch)
    harness.check_equal("names", sorted(ours), sorted(expected))
    for name, entry in expected.items():
        harness.check_equal(f"{name} numel", ours[name]["numel"], entry["numel"])
        harness.check_equal(f"{name} shape", ours[name]["shape"], entry["shape"])
        for key in ("l2", "cos"):
            right = corrected.get(name, entry)[key]
            harness.check(same_number(ours[name][key], right), f"{name} {key}: {ours[name][key]}, not {right}")


REAL = ["plain.pt", "sharded", "dcp4", "megatron_core", "torch_dist"]


def check_real(msprobe, data, first, second, scratch):
    folder = pathlib.Path(data).resolve() / "ckpt" / "real"
    words = ["ckpt_compare", str(folder / first), str(folder / second), "--details", "details.csv"]
    harness.run(msprobe, [*words, "--fail-on", "unequal"], scratch, status=0)
    megatron = ("megatron_core", "torch_dist")
    parameters = 31 - 4 if first in megatron or second in megatron else 39
    harness.check_equal("equal", [r["Status"] for r in details(scratch).values()], ["equal"] * parameters)


def make_tests(msprobe, data):
    tests = []
    for case in IDENTICAL:

        def identical(scratch, case=case):
            check_identical(msprobe, data, case, scratch)

        tests.append((f"{case[0]} is {case[1]}", identical))
    for pair, corrected in NUMBERS.items():

        def numbers(scratch, pair=pair, corrected=corrected):
            check_numbers(msprobe, data, pair, corrected, scratch)

        tests.append((f"numbers of {pair}", numbers))

    for first, second in itertools.product(REAL, REAL):

        def real(scratch, first=first, second=second):
            check_real(msprobe, data, first, second, scratch)

        tests.append((f"real {first} is {second}", real))

    def padding(scratch):
        result = compare(msprobe, data, "tp1pp1", "tp2pp1_vocabpad", scratch)
        harness.check_equal("exit status", result.returncode, 0)
        rows = details(scratch)
        for name in ("embedding.word_embeddings.weight", "output_layer.weight"):
            harness.check_equal(name, rows[name]["Status"], "equal")
            harness.check("32 and 36 rows" in rows[name]["Note"], rows[name]["Note"])
            entry = similarity(scratch)[name]
            harness.check_equal(name, entry["shape"], [[32, 8], [36, 8]])
            harness.check_equal(name, [entry["l2"], entry["cos"], entry["numel"]], [0.0, 1.0, [256, 288]])
        harness.check_equal("equal", sum(row["Status"] == "equal" for row in rows.values()), ALL)

    def missing_rank(scratch):
        result = compare(msprobe, data, "tp2pp2", "tp2pp2_missing_rank", scratch)
        harness.check_equal("exit status", result.returncode, 2)
        harness.check("mp_rank_01_001/model_optim_rng.pt" in result.stderr, result.stderr)
        harness.check_equal("files", list(scratch.iterdir()), [])

    def missing_rank_allowed(scratch):
        result = compare(msprobe, data, "tp2pp2", "tp2pp2_missing_rank", scratch, "--allow-partial")
        harness.check_equal("exit status", result.returncode, 2)
        rows = details(scratch)
        broken = [name for name, row in rows.items() if row["Status"] == "not comparable"]
        # All of the second stage: layers 2 and 3, the last norm and the output layer.
        expected = [n for n in rows if ".2." in n or ".3." in n or "final" in n or n.startswith("output")]
        harness.check_equal("not comparable", sorted(broken), sorted(expected))
        harness.check(all("mp_rank_01_001" in rows[name]["Note"] for name in broken), str(rows))
        harness.check_equal("others", {r["Status"] for n, r in rows.items() if n not in broken}, {"equal"})
        harness.check_equal("l2", similarity(scratch)["output_layer.weight"]["l2"], "error")

    def copies_differ(scratch):
        result = compare(msprobe, data, "tp1pp1", "replica_value_diff", scratch)
        note = details(scratch)["decoder.final_layernorm.weight"]["Note"]
        harness.check("its copy on tensor-parallel rank 1 differs in 8 of 8 elements" in note, note)
        harness.check("decoder.final_layernorm.weight" in result.stderr, result.stderr)
        statuses = [row["Status"] for row in details(scratch).values()]
        harness.check_equal("equal", statuses.count("equal"), ALL - 1)
        harness.check_equal("status of the row", statuses.count("copies differ"), 1)
        for level in ("unequal", "different"):
            options = ["--fail-on", level, "--overwrite"]
            result = compare(msprobe, data, "tp1pp1", "replica_value_diff", scratch, *options)
            harness.check_equal(f"status at {level}", result.returncode, 1)

    def copies_of_other_shape(scratch):
        result = compare(msprobe, data, "tp1pp1", "replica_shape_diff", scratch)
        harness.check_equal("exit status", result.returncode, 2)
        rows = details(scratch)
        broken = [name for name, row in rows.items() if row["Status"] == "not comparable"]
        harness.check_equal("not comparable", broken, ["decoder.final_layernorm.weight"])
        harness.check_equal("equal", sum(row["Status"] == "equal" for row in rows.values()), ALL - 1)

    def broken_tracker(scratch):
        result = compare(msprobe, data, "tp1pp1", "tracker_garbage", scratch)
        harness.check_equal("exit status", result.returncode, 2)
        harness.check("'latest' must be a number or 'release'" in result.stderr, result.stderr)

    def malicious_named(scratch):
        result = compare(msprobe, data, "malicious", "malicious", scratch)
        harness.check("its pickle names posix.system; msprobe ran none of it" in result.stderr, result.stderr)

    def single_rank(scratch):
        rank = "tp2pp2/iter_0000005/mp_rank_01_000"
        result = compare(msprobe, data, rank, f"{rank}/model_optim_rng.pt", scratch)
        harness.check_equal("exit status", result.returncode, 0)
        harness.check_equal("statuses", {row["Status"] for row in details(scratch).values()}, {"equal"})

    def any_number_of_threads(scratch):
        texts = set()
        for jobs in ("1", "2", "7"):
            compare(msprobe, data, "tp2pp2", "tp1pp1_other", scratch, "-j", jobs, "--overwrite")
            texts.add((scratch / "ckpt_similarity.json").read_bytes() + (scratch / "details.csv").read_bytes())
        harness.check_equal("different results", len(texts), 1)

    for function in (
        padding,
        missing_rank,
        missing_rank_allowed,
        copies_differ,
        copies_of_other_shape,
        broken_tracker,
        malicious_named,
        single_rank,
        any_number_of_threads,
    ):
        tests.append((function.__name__.replace("_", " "), function))
    return tests


if __name__ == "__main__":
    harness.main(make_tests)
