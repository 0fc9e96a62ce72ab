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
from functools import partial

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
    return [
        *((f"{case[0]} is {case[1]}", partial(check_identical, msprobe, data, case)) for case in IDENTICAL),
        *((f"numbers of {pair}", partial(check_numbers, msprobe, data, pair, corrected)) for pair, corrected in NUMBERS.items()),
        *((f"real {first} is {second}", partial(check_real, msprobe, data, first, second))
          for first, second in itertools.product(REAL, REAL)),
    ]


harness.main(make_tests)
