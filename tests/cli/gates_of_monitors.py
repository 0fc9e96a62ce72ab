#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every gate (--fail-on) of `monitor`, over csv files and alerts of which nothing, or a part, can be judged, in the layouts of
both monitors: cells that are NaN, infinite, blank or no numbers, in all of a run or a part of it, and files that are none.
None of them passes, and one line says what was not judged. Beside them stands what can be judged, which passes.

usage: gates_of_monitors.py MSPROBE
"""

import json
import re

import harness
from gate_checks import RANKS, found, never_passes, one_line, something, tests_of

STEPS = range(8)
NAMES = ("embedding.output", "layer.output")
STATISTICS = ("norm", "max", "nans")
LEVELS = ("different", "passing", "parted")
CELLS = {"NaN": "nan", "infinite": "inf", "blank": "", "a word": "x"}
MORE_CELLS = {"negative infinite": "-inf", "a space": " ", "None": "None"}


def places():
    """Parts of a run: a name, and a function of rank, step, series and statistic."""
    yield "throughout", lambda rank, step, name, statistic: True
    yield "in a rank", lambda rank, step, name, statistic: rank == 1
    yield "in a series", lambda rank, step, name, statistic: name == NAMES[1]
    yield "at a step", lambda rank, step, name, statistic: step == 0
    yield "in a series of a rank", lambda rank, step, name, statistic: rank == 1 and name == NAMES[0]


class Run:
    """The csv files of a run. hit: cells (but for counts of NaN) that get `cell` instead of a number."""

    def __init__(self, layout, hit=lambda *_: False, cell="", ranks=RANKS, steps=STEPS, names=NAMES, statistics=STATISTICS, change=None,
                 quantities=("actv",)):
        self.quantities = quantities
        self.layout, self.hit, self.cell, self.change = layout, hit, cell, change
        self.ranks, self.steps, self.names, self.statistics = ranks, steps, names, statistics

    def value(self, rank, step, name, statistic):
        hit = self.hit(rank, step, name, statistic)
        if statistic == "nans":
            return "16" if hit and self.cell == "nan" else "0"
        return self.cell if hit else repr(1 + 0.1 * (step % 3) + len(name) + rank)

    def lines(self, rank):
        columns = ",".join(self.statistics)
        yield f"vpp_stage,name,step,micro_step,{columns},shape,dtype" if self.layout == 1 else f"vpp_stage,step,module_name,scope,{columns}"
        for step in self.steps:
            for name in self.names:
                cells = ",".join(self.value(rank, step, name, each) for each in self.statistics)
                yield f'0,{name},{step},0,{cells},"[4, 4]",torch.float32' if self.layout == 1 else f"0,{step},{name},forward,{cells}"

    def write(self, folder):
        for rank in self.ranks:
            place = folder / (f"Jan01_00-00-00-rank{rank}-00000000" if self.layout == 1 else f"rank_{rank}")
            place.mkdir(parents=True)
            data = "".join(f"{line}\n" for line in self.lines(rank)).encode()
            changed = self.change(rank, data) if self.change else data
            for quantity in self.quantities if changed is not None else ():
                (place / (f"{quantity}_0-99.csv" if self.layout == 1 else f"{quantity}_step0-99.csv")).write_bytes(changed)


# Changes to the file of every rank, or of one of them.


def of_lines(change):
    return lambda data: b"".join(change(data.splitlines(keepends=True)))


FILES = {
    "no file": lambda data: None,
    "an empty file": lambda data: b"",
    "a header alone": of_lines(lambda lines: lines[:1]),
    "no header": of_lines(lambda lines: lines[1:]),
    "another header": of_lines(lambda lines: [b"a,b,c,d,e,f\n", *lines[1:]]),
    "no column of steps": lambda data: data.replace(b"step,", b"time,", 1),
    "UTF-16": lambda data: data.decode().encode("utf-16"),
    "not UTF-8": lambda data: b"\xff\xfe\x00" + data,
    "NUL bytes": lambda data: bytes(len(data)),
    "a row cut off": lambda data: data[:-20],
    "rows cut off": of_lines(lambda lines: [*lines[:4], *(line[:9] + b"\n" for line in lines[4:])]),
    "a field more": of_lines(lambda lines: [lines[0], *(b"9," + line for line in lines[1:])]),
    "steps that are words": of_lines(lambda lines: [lines[0], *(re.sub(rb",\d,", b",first,", line) for line in lines[1:])]),
    "negative steps": of_lines(lambda lines: [lines[0], *(re.sub(rb",(\d),", rb",-1\1,", line) for line in lines[1:])]),
    "no statistic": of_lines(lambda lines: [b",".join(line.split(b",")[:4]) + b"\n" for line in lines]),
    "counts of NaN alone": None,
}


def files_of(name, layout, ranks=RANKS, hit=RANKS):
    """A run whose files are of this kind in the ranks `hit`."""
    if FILES[name] is None:
        return Run(layout, lambda rank, *_: rank in hit, "nan", ranks, statistics=("nans",))
    return Run(layout, ranks=ranks, change=lambda rank, data: FILES[name](data) if rank in hit else data)


# No sentence speaks of all where a part was not judged.
EVERYTHING = "^Both runs|^No series blows up or becomes NaN or infinite\\."


def doubtful(*run):
    never_passes(*run, never_said=EVERYTHING)


def not_judged(*run):
    one_line(*run, never_said=EVERYTHING)


def sides(first, second=None):
    def write(scratch):
        first.write(scratch / "a")
        (second or first).write(scratch / "b")
    return write


def commands(layout):
    """A command over the runs a and b, or over a alone; by name."""
    for level in LEVELS if layout == 1 else LEVELS[-1:]:
        yield f"compare {level}", ["monitor", "compare", "a", "b", "--fail-on", level], True
    yield "report of two", ["monitor", "report", "a", "b", "-o", "page.html", "--overwrite", "--fail-on", "trouble"], True
    yield "report", ["monitor", "report", "a", "-o", "page.html", "--overwrite", "--fail-on", "trouble"], False
    for rule in ("AnomalyTurbulence:0.5", "AnomalyNan", "AnomalyNan:1000"):
        yield f"alerts {rule}", ["monitor", "alerts", "-d", "a", "--rule", rule, "--fail-on", "alert"], False


def series_cases():
    for layout in (1, 2):
        for name, words, of_two in commands(layout):
            cells = CELLS if layout == 2 or "parted" not in name else CELLS | MORE_CELLS
            name = f"{name}, layout {layout}"
            for what, cell in cells.items():
                for where, hit in places():
                    if of_two or (what != "NaN" and "infinite" not in what):
                        check = not_judged
                    else:  # NaN in one run may be trouble
                        check = doubtful
                    # The first step has no history to be turbulent against.
                    if "Turbulence" in name and where == "at a step" and "infinite" in what:
                        check = doubtful
                    run = Run(layout, hit, cell)
                    yield f"{name}: {what} {where}", sides(run), words, check
                    if of_two:
                        yield f"{name}: {what} {where}, in one", sides(run, Run(layout)), words, doubtful
            for what in FILES:
                yield f"{name}: {what}", sides(files_of(what, layout)), words, doubtful
                yield f"{name}: {what} in a rank", sides(files_of(what, layout, hit=(1,))), words, doubtful
                yield f"{name}: {what} in the only rank", sides(files_of(what, layout, ranks=(0,))), words, doubtful
                if of_two:
                    yield f"{name}: {what} in a rank of one", sides(files_of(what, layout, hit=(1,)), Run(layout)), words, doubtful
            yield f"{name}: the same", sides(Run(layout)), words, something
            yield f"{name}: Windows' ends of lines", sides(Run(layout, change=lambda rank, data: data.replace(b"\n", b"\r\n"))), words, something
            if of_two:
                for what, more in (("a rank", {"ranks": (0,)}), ("a step", {"steps": STEPS[:-1]}), ("a series", {"names": NAMES[:1]}),
                                   ("a statistic", {"statistics": STATISTICS[:-1]})):
                    yield f"{name}: {what} less in the first", sides(Run(layout, **more), Run(layout)), words, not_judged
                    yield f"{name}: {what} less in the second", sides(Run(layout), Run(layout, **more)), words, not_judged
                more = Run(layout, quantities=("actv", "actv_grad")) if layout == 1 else Run(layout, names=(*NAMES, "other.output"))
                yield f"{name}: a file less in the first", sides(Run(layout), more), words, not_judged
                yield f"{name}: a file less in the second", sides(more, Run(layout)), words, not_judged
                yield f"{name}: a statistic that is not there", sides(Run(layout)), [*words, "--statistics", "median"], doubtful
                yield f"{name}: no rank in common", sides(Run(layout), Run(layout, ranks=(2, 3))), words, doubtful
                yield f"{name}: no name in common", sides(Run(layout), Run(layout, names=("other",))), words, doubtful
                yield f"{name}: no step in common", sides(Run(layout), Run(layout, steps=range(10, 18))), words, doubtful
                yield f"{name}: counts of NaN", sides(Run(layout)), [*words, "--statistics", "nans"], something
            # One statistic of a step speaks for the others.
            partly = Run(layout, lambda rank, step, name, statistic: statistic == "max", "nan")
            yield f"{name}: NaN in a statistic", sides(partly), words, found if "Nan" in name else something
        yield f"alerts, layout {layout}: a step", sides(Run(layout, steps=(0,))), \
            ["monitor", "alerts", "-d", "a", "--rule", "AnomalyTurbulence:0.5", "--fail-on", "alert"], not_judged
        yield f"alerts, layout {layout}: no norm and no mean", sides(Run(layout, statistics=("max", "nans"))), \
            ["monitor", "alerts", "-d", "a", "--rule", "AnomalyTurbulence:0.5", "--fail-on", "alert"], not_judged


def alert_cases():
    def alert(step, rank=0):
        tag = f"0:layer.output:0/rank{rank}/actv"
        return f"{tag}_step_{step}_call_0", {
            "rank": rank, "step": step, "micro_step": 0, "pp_stage": 0, "vpp_stage": 0, "call_id": 0, "tag_name": tag,
            "message": f"Rule AnomalyTurbulence reports anomaly signal in ('{tag}', 'norm') at step {step}, current value 9, history mean 1.",
            "group_mates": [0]}

    def monitored(text="{}", series=False, ranks=(0,)):
        """anomaly.json of the ranks; no text: no such file."""
        def write(scratch):
            for rank in ranks:
                place = scratch / "a" / "anomaly_detected" / f"rank{rank}"
                place.mkdir(parents=True)
                if text is not None:
                    (place / "anomaly.json").write_text(text, encoding="utf-8")
            if series:
                Run(1).write(scratch / "a")
        return write

    def alerts(*steps):
        return json.dumps(dict(alert(step) for step in steps))

    def without(*keys, **more):
        key, one = alert(3)
        return json.dumps({key: {**{name: each for name, each in one.items() if name not in keys}, **more}})

    words = ["monitor", "analyze", "-d", "a", "-o", "out", "--fail-on", "alert"]
    for name, write, asked in (
        ("a step after the last", monitored(alerts(3)), "[40]"), ("steps after the last", monitored(alerts(3)), "200,201"),
        ("a step that was not monitored", monitored(alerts(3), True, RANKS), "[140]"), ("no alerts, no series", monitored(), "[3]"),
        ("no alerts, a step that was not monitored", monitored("{}", True, RANKS), "[140]"),
        ("an alert-free step and one that was not monitored", monitored(alerts(3), True, RANKS), "[4, 140]"),
    ):
        yield f"analyze -s: {name}", write, [*words, "-s", asked], not_judged
    yield "analyze: no file", monitored(None), words, not_judged
    yield "analyze: no file, but series", monitored(None, True, RANKS), words, not_judged
    yield "analyze: a rank of the series without a file", monitored("{}", True), words, not_judged
    for name, text in (("a number", json.dumps({"x": 1})), ("a text", json.dumps({"x": "y"})), ("null", json.dumps({"x": None})),
                       ("a step that is a word", without(step="x")), ("a rank that is null", without(rank=None)),
                       ("a tag that is a number", without(tag_name=1)), ("mates that are a word", without(group_mates="0"))):
        yield f"analyze: an alert that is {name}", monitored(text), words, not_judged
    for name, text in (("empty", ""), ("a list", "[]"), ("null", "null"), ("cut off", alerts(3)[:-5]), ("no JSON", "alert"), ("UTF-16", "\ufffe{}")):
        yield f"analyze: a file that is {name}", monitored(text), words, doubtful
    yield "analyze: nothing there", lambda scratch: (scratch / "a").mkdir(), words, doubtful
    yield "analyze: an alert", monitored(alerts(3)), words, found
    yield "analyze: an alert beside a number", monitored(json.dumps(dict([alert(3), ("x", 1)]))), words, found
    yield "analyze: no alerts", monitored(), words, something
    yield "analyze: no alerts, but series", monitored("{}", True, RANKS), words, something
    yield "analyze -s: a step without alerts", monitored(alerts(3), True, RANKS), [*words, "-s", "[4]"], something
    yield "analyze -s: between alerts", monitored(alerts(3, 9)), [*words, "-s", "[5]"], something
    yield "analyze -s: no alerts, but series", monitored("{}", True, RANKS), [*words, "-s", "[5]"], something


def make_tests(msprobe):
    return tests_of(msprobe, [*series_cases(), *alert_cases()])


if __name__ == "__main__":
    harness.main(make_tests)
