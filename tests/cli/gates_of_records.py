#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of the commands that read checkpoints and gradients, over those of which nothing, or a whole part,
cannot be judged. None of them passes, and a line says what was not judged. Beside them stands what each command can judge,
which passes. gates.py has the commands that read dumps, gates_of_configs.py and gates_of_monitors.py the others.

usage: gates_of_records.py MSPROBE
"""

import harness
from gate_checks import nothing, something, tests_of
from tensor_files import npy, save_lists


def checkpoint_cases():
    def files(first, second=None, name_map=None):
        def write(scratch):
            save_lists(scratch / "a.safetensors", first)
            save_lists(scratch / "b.safetensors", first if second is None else second)
            if name_map is not None:
                (scratch / "map.yaml").write_text(name_map, encoding="utf-8")
        return write

    rule = "- to: w\n  from: {}\n"
    one = {"w": [1.0, 2.0]}
    def not_compared(*run):
        nothing(*run, told="^msprobe: error: .*(nothing was compared|not judged|it has no tensors)")

    for level in ("different", "missing", "unequal"):
        words = ["ckpt_compare", "a.safetensors", "b.safetensors", "-o", "out.json", "--fail-on", level]
        for name, write, more in (
            ("no parameters", files({}), []),
            ("no parameters in one", files(one, {}), []),
            ("no name in common", files(one, {"other": [1.0, 2.0]}), []),
            ("no element", files({"w": []}), []),
            ("no element in common", files({"w": [], "a": [1.0]}, {"w": [], "b": [1.0]}), []),
            ("a map that names nothing", files(one, None, rule.format("other")), ["--name-map", "map.yaml"]),
        ):
            yield f"ckpt_compare {level}: {name}", write, [*words, *more], not_compared
        nan = {**one, "n": [math.nan, math.nan]}
        yield f"ckpt_compare {level}: NaN throughout", files(nan), words, something if level == "unequal" else nothing
        yield f"ckpt_compare {level}: NaN beside a number", files({"w": [math.nan, 1.0]}), words, something
        yield f"ckpt_compare {level}: infinite throughout", files({**one, "mask": [-math.inf, -math.inf]}), words, something
        def folders(scratch):
            for side in "ab":
                (scratch / side).mkdir()
                save_lists(scratch / side / "model.safetensors", one)
                save_lists(scratch / side / "model.fp16.safetensors", {"w": [3.0, 4.0]})
        yield f"ckpt_compare {level}: weights beside others", folders, ["ckpt_compare", "a", "b", *words[3:]], nothing
        yield f"ckpt_compare {level}: the same", files(one), words, something
        yield f"ckpt_compare {level}: a parameter without elements", files({**one, "e": []}), words, something
        yield f"ckpt_compare {level}: a map", files({"v": [1.0]}, {"w": [1.0]}, rule.format("v")), [*words, "--name-map", "map.yaml"], something
    words = ["config_check", "-c", "a.safetensors", "b.safetensors", "-o", "out.json", "--fail-on", "error"]
    yield "config_check of checkpoints: no name in common", files(one, {"x": [1.0]}), words, not_compared
    yield "config_check of checkpoints: the same", files(one), words, something


def gradient_cases():
    def sides(first, second=None):
        """rank -> step -> parameter -> signs."""
        def write(scratch):
            for side, ranks in (("a", first), ("b", first if second is None else second)):
                (scratch / side).mkdir()
                for rank, steps in ranks.items():
                    folder = scratch / side / f"rank{rank}"
                    folder.mkdir()
                    for step, parameters in steps.items():
                        (folder / f"step{step}").mkdir()
                        rows = "param_name,max,min,norm,shape\r\n"
                        for name, values in parameters.items():
                            (folder / f"step{step}" / f"{name}.npy").write_bytes(npy("|b1", (len(values),), bytes(values)))
                            rows += f"{name},1.0,-1.0,1.0,[{len(values)}]\r\n"
                        (folder / f"grad_summary_{step}.csv").write_text(rows, encoding="utf-8")
        return write

    signs = {"w": [True, False, True]}
    def not_compared(*run):
        nothing(*run, told="^msprobe: (error: .|warning: not compared: .)")

    for level in ("suspect", "unequal"):
        words = ["grad_compare", "a", "b", "-o", "out", "--fail-on", level]
        for name, write in (
            ("no ranks", sides({})),
            ("no rank in common", sides({0: {0: signs}}, {1: {0: signs}})),
            ("a rank less", sides({0: {0: signs}, 1: {0: signs}}, {0: {0: signs}})),
            ("no steps", sides({0: {}})),
            ("no step in common", sides({0: {0: signs}}, {0: {1: signs}})),
            ("a step more", sides({0: {0: signs, 1: signs}}, {0: {0: signs}})),
            ("no parameter in common", sides({0: {0: signs}}, {0: {0: {"v": [True]}}})),
            ("no parameters", sides({0: {0: {}}})),
            ("no parameters in a rank", sides({0: {0: signs}, 1: {0: {}}})),
            ("a summary without signs", lambda scratch: [sides({0: {0: signs}})(scratch), *[
                (scratch / side / "rank0" / "grad_summary_1.csv").write_text("param_name,max,min,norm,shape\r\n") for side in "ab"]]),
            ("signs that no summary names", lambda scratch: [sides({0: {0: {**signs, "v": [True]}}})(scratch), *[
                (scratch / side / "rank0" / "grad_summary_0.csv").write_text("param_name,max,min,norm,shape\r\nw,1,-1,1,[3]\r\n") for side in "ab"]]),
            ("no elements", sides({0: {0: {"w": []}}})),
            ("no elements in a rank", sides({0: {0: signs}, 1: {0: {"w": []}}})),
        ):
            yield f"grad_compare {level}: {name}", write, words, not_compared
        yield f"grad_compare {level}: the same", sides({0: {0: signs, 1: signs}, 1: {0: signs, 1: signs}}), words, something


def monitor_cases():
    def run(folder, value=lambda step, rank: 1 + 0.1 * (step % 3), steps=range(8), ranks=(0,), statistics=("norm", "max", "nans")):
        for rank in ranks:
            place = folder / f"Jan01_00-00-00-rank{rank}-00000000"
            place.mkdir(parents=True)
            rows = [f"vpp_stage,name,step,micro_step,{','.join(statistics)},shape,dtype"]
            for step in steps:
                one = value(step, rank)
                spelt = [str(int(math.isnan(one)) * 16) if each == "nans" else str(one) for each in statistics]
                rows.append(f'0,layer.output,{step},0,{",".join(spelt)},"[4, 4]",torch.float32')
            (place / "actv_0-99.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")

    def nan(_step, _rank):
        return math.nan

    def nan_in_rank(step, rank):
        return math.nan if rank == 1 else 1 + 0.1 * (step % 3)

    def alerts(folder, steps=(3,)):
        place = folder / "anomaly_detected" / "rank0"
        place.mkdir(parents=True)
        found = {}
        for step in steps:
            tag = "0:layer.output:0/rank0/actv"
            found[f"{tag}_step_{step}_call_0"] = {
                "rank": 0, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": 0, "call_id": 0, "tag_name": tag,
                "message": f"Rule AnomalyTurbulence reports anomaly signal in ('{tag}', 'norm') at step {step}, current value 9, history mean 1.",
                "group_mates": [0]}
        (place / "anomaly.json").write_text(json.dumps(found), encoding="utf-8")

    def both(**more):
        return lambda scratch: [run(scratch / side, **more) for side in "ab"]

    def single(**more):
        return lambda scratch: run(scratch / "a", **more)

    for level in ("different", "passing", "parted"):
        words = ["monitor", "compare", "a", "b", "--fail-on", level]
        for name, write, more in (
            ("NaN throughout", both(value=nan), []),
            ("NaN throughout in a rank", both(value=nan_in_rank, ranks=RANKS), []),
            ("infinite throughout", both(value=lambda step, rank: math.inf), []),
            ("no steps", both(steps=()), []),
            ("a statistic that is not there", both(), ["--statistics", "median"]),
            ("a statistic that is not there beside one", both(), ["--statistics", "norm,median"]),
        ):
            yield f"monitor compare {level}: {name}", write, [*words, *more], fails
        yield f"monitor compare {level}: the same", both(ranks=RANKS), words, something
        yield f"monitor compare {level}: the same counts of NaN", both(), [*words, "--statistics", "nans"], something
        yield f"monitor compare {level}: NaN at a step", both(value=lambda step, rank: math.nan if step == 5 else 1), words, nothing

    words = ["monitor", "report", "a", "-o", "page.html", "--fail-on", "trouble"]
    for name, write in (("NaN throughout", single(value=nan)), ("NaN throughout in a rank", single(value=nan_in_rank, ranks=RANKS)),
                        ("no steps", single(steps=()))):
        yield f"monitor report: {name}", write, words, fails
    yield "monitor report: NaN throughout in both", both(value=nan), [*words[:3], "b", *words[3:]], nothing
    yield "monitor report: healthy", single(ranks=RANKS), words, something
    yield "monitor report: the same twice", both(), [*words[:3], "b", *words[3:]], something

    for rule in ("AnomalyTurbulence:0.5", "AnomalyNan"):
        words = ["monitor", "alerts", "-d", "a", "--rule", rule, "--fail-on", "alert"]
        kinds = [("no steps", single(steps=())), ("no steps in a rank", lambda scratch: [run(scratch / "a"), run(scratch / "a", steps=(), ranks=(1,))])]
        if rule != "AnomalyNan":
            kinds += [("NaN throughout", single(value=nan)), ("NaN throughout in a rank", single(value=nan_in_rank, ranks=RANKS)),
                      ("one step", single(steps=(0,))), ("no norm and no mean", single(statistics=("max", "nans")))]
        for name, write in kinds:
            yield f"monitor alerts {rule}: {name}", write, words, fails
        yield f"monitor alerts {rule}: healthy", single(ranks=RANKS), words, something

    def monitored(steps=(3,), series=True):
        def write(scratch):
            alerts(scratch / "a", steps)
            if series:
                run(scratch / "a")
        return write

    words = ["monitor", "analyze", "-d", "a", "-o", "out", "--fail-on", "alert"]
    for name, write, asked in (
        ("a step behind the last", monitored(series=False), "[40]"), ("steps behind the last", monitored(series=False), "200,201"),
        ("a step nobody monitored", monitored(), "[140]"), ("no alerts, no series", monitored((), series=False), "[3]"),
        ("no alerts, a step nobody monitored", monitored(()), "[140]"), ("an alert-free step and one nobody monitored", monitored(), "[4, 140]"),
    ):
        yield f"monitor analyze -s: {name}", write, [*words, "-s", asked], nothing
    yield "monitor analyze: no alerts", monitored((), series=False), words, something
    yield "monitor analyze -s: a step without alerts", monitored(), [*words, "-s", "[4]"], something
    yield "monitor analyze -s: between alerts", monitored((3, 9), series=False), [*words, "-s", "[5]"], something
    yield "monitor analyze -s: no alerts, but series", monitored(()), [*words, "-s", "[5]"], something


def make_tests(msprobe):
    return tests_of(msprobe, [*checkpoint_cases(), *gradient_cases()])


harness.main(make_tests)
