#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The curve and the map of the HTML report in headless Chromium: what they draw, and where a click on them leads.

usage: report_curves.py MSPROBE SAMPLES DIAGNOSIS-CASES

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import csv
import io
import pathlib
import subprocess
from functools import partial

from dumps import tensor, write_rank
from harness import check, check_equal, data, main
from report_reader import (DOWN, ENTER, EXCHANGED, KEPT, RIGHT, TWO_FAULTS, contrast_of, entry_opens, of_pair, shown, write_model,
                           write_report)


def table_of(msprobe, target, golden):
    text = subprocess.run([msprobe, "-q", "compare", "-tp", target, "-gp", golden, "-o", "-"], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def from_curve(browser):
    # Where the first output of an error is drawn, by the report's own axes.
    place = browser.run(
        "const plot = window.report.curve.plots[0]; const [series] = plot.series;"
        "const i = series.rows.findIndex((row) => series.rank.verdicts[row] === 2);"
        "return [plot.x(i), window.report.curve.y(plot, series.values[i])];"
    )
    browser.click("#curve canvas", place)
    entry_opens(browser, "Functional.layer_norm.3.forward.output.0")


def curve_shows_the_relative_distance(browser, msprobe, samples):
    choose = "const menu = document.getElementById('metric'); menu.value = arguments[0]; menu.dispatchEvent(new Event('change'))"
    browser.run(choose, "EucDist / Bench l2norm")
    expected = {}
    for row in table_of(msprobe, samples / "target", samples / "golden"):
        if row["Rank"] == "rank0" and ".forward.output" in row["NPU Name"]:
            distance = None if row["EucDist"] == "unsupported" else float(row["EucDist"])
            expected[row["NPU Name"]] = -1 if distance is None else distance and distance / float(row["Bench l2norm"])
    shown = browser.run(
        "const [series] = window.report.curve.plots[0].series;"
        "return series.rows.map((row, i) => [series.rank.name(row), series.values[i]])"
    )
    check(any(value > 0 for value in expected.values()), "the runs differ")
    check_equal("curve", {name: f"{value:.6e}" for name, value in shown},
                {name: f"{value:.6e}" for name, value in expected.items()})
    browser.run(choose, "MaxAbsErr")
    largest = browser.run("return Math.max(...window.report.curve.plots[0].series[0].values)")
    check(largest > max(expected.values()), "another metric is another curve")


def from_curve_by_keyboard(browser):
    browser.run("document.querySelector('#curve canvas').focus()")
    browser.keys("+", RIGHT, RIGHT)
    browser.wait("telling of a point", "!document.querySelector('#curve .tip').hidden")
    name = browser.run("return document.querySelector('#curve .tip .name').textContent")
    browser.keys(ENTER)
    entry_opens(browser, name)


def curve_shows_the_error(browser, msprobe, samples):
    table = [row for row in table_of(msprobe, samples / "target", samples / "golden") if row["Rank"] == "rank0"]
    shown = browser.run(
        "const [series] = window.report.curve.plots[0].series; const { rank } = series;"
        "return series.rows.map((row, i) => [rank.name(row), series.values[i], rank.explained[row]])"
    )
    expected = {row["NPU Name"]: row for row in table if ".forward.output" in row["NPU Name"]}
    check_equal("errors", {name: f"{error:.4e}" for name, error, _ in shown}, {name: f"{float(row['Error']):.4e}" for name, row in expected.items()})
    for name, error, explained in shown:
        introduced = expected[name]["Origin"] == "introduced"
        check_equal(f"{name} is above the band: {error} {explained}", error >= explained, introduced) if explained is not None else None
    # docs/how-it-decides.md, "Evidence": T times the largest error that came in and the rounding of float32.
    received = max(float(row["Error"]) for row in table if row["NPU Name"].startswith("Functional.gelu.0.forward.input") and row["Error"] != "N/A")
    (band,) = [explained for name, _, explained in shown if name == "Functional.gelu.0.forward.output.0"]
    check(abs(band / (4 * (received + 2**-24)) - 1) < 0.01, f"band {band} of {received}")
    legend = browser.run("return document.querySelector('#curve .legend').innerText")
    for part in ("explained on step0/rank0", "4 times", "introduced", "the culprit"):
        check(part in legend, f"{part!r} is in the legend: {legend}")
    # Pixels of the curve: the mark of what is introduced, and the band right of it.
    color_at = "(x, y) => [...plot.canvas.getContext('2d').getImageData(Math.round(x), Math.round(y), 1, 1).data].slice(0, 3).join()"
    introduced, swatch, band, above = browser.run(
        f"const {{ curve }} = window.report; const plot = curve.plots[0]; const at = {color_at};"
        "const [series] = plot.series; const i = series.rows.findIndex((row) => series.rank.grades[row] === GRADE.introduced);"
        "const y = curve.y(plot, series.values[i]); const x = plot.x(i + 0.5);"
        "const swatch = getComputedStyle(document.querySelector('.key.introduced')).backgroundColor.match(/[0-9]+/g).join();"
        "return [at(plot.x(i) + 3, y + 1), swatch, at(x + 4, plot.bottom - 14), at(plot.x(2), plot.scaleTop + 5)]"
    )
    check(all(abs(int(a) - int(b)) < 4 for a, b in zip(introduced.split(","), swatch.split(","))), f"colour of what is introduced: {introduced}, {swatch}")
    check(band != above, f"the band shows: {band}, {above}")


def second_fault(browser):
    check_equal("headline", browser.run("return document.querySelector('#verdict .name').textContent"), "Functional.linear.4.forward")
    place = browser.run("return document.getElementById('place').innerText")
    check("in layers.4" in place and "rank0, rank2" in place and "likely" in place, place)
    summary = browser.run("return document.querySelector('#answer summary').innerText")
    check(summary.startswith("also") and "Functional.linear.9.forward" in summary and "rank1" in summary, summary)
    browser.run("document.querySelector('#answer summary').focus()")
    browser.keys(ENTER)
    browser.wait("unfolding", "document.querySelector('#answer details').open")
    words = browser.run("return [...document.querySelectorAll('#answer details dt')].map((one) => one.textContent)")
    check_equal("details", words, ["why", "next"])
    browser.click("#answer summary .link")
    entry_opens(browser, "Functional.linear.9.forward.output.0")
    text = browser.run("return document.getElementById('entry').innerText")
    for part in ("introduced: the error begins here", "output error 3.0e-02 from inputs 1.0e-07", "dump again with task tensor"):
        check(part in text, f"{part!r} is in the panel")
    blamed = browser.run("return window.report.comparison.ranks.map((rank) => rank.groups.filter((group) => group.blamed).map((group) => rank.entries[group.entry]))")
    check_equal("to blame", blamed, [["Functional.linear.4.forward"], ["Functional.linear.9.forward"], ["Functional.linear.4.forward"]])


def map_of_ranks(browser):
    browser.click("#show-map")
    check(browser.run("return document.getElementById('curve').hidden && document.getElementById('show-map').getAttribute('aria-selected') === 'true'"), "the map is shown")
    heads = browser.run("return [...document.querySelectorAll('.map-head .cell')].map((cell) => cell.textContent)")
    check_equal("columns", heads, ["rank0", "rank1", "rank2"])
    cells = browser.run("const { layers } = window.report.map; return ['layers.3', 'layers.4', 'layers.9', 'layers'].map((path) => [...layers.known.get(path).grades].map((grade) => GRADES[grade].name))")
    check_equal("cells", cells, [["rounding"] * 3, ["introduced", "rounding", "introduced"], ["propagated", "introduced", "propagated"], ["introduced"] * 3])
    line = browser.run("return window.report.map.shown.findIndex((layer) => layer.path === 'layers.9')")
    browser.run("window.report.map.list.reveal(arguments[0])", line)
    browser.click(f"#map-grid-{line} canvas", browser.run("const { map } = window.report; return [map.across * 1.5, 9]"))
    browser.wait("filtering", f"{KEPT} === '2 of 72 rows'")
    check_equal("rows", browser.run("return [...document.querySelectorAll('#table .row')].map((row) => row.children[3].title + ' ' + row.children[1].title)"),
                ["step0/rank1 Functional.linear.9.forward.input.0", "step0/rank1 Functional.linear.9.forward.output.0"])
    told = browser.run("return document.querySelector('#map p').textContent")
    check_equal("told", told, "layers.9 on rank1: introduced, largest error 0.03")
    browser.click("#within")
    browser.wait("leaving", f"{KEPT} === '72 rows'")
    browser.run("document.getElementById('map-grid').focus()")
    browser.keys(DOWN, RIGHT, ENTER)
    browser.wait("filtering by keyboard", f"{KEPT} === '2 of 72 rows'")
    check_equal("within", browser.run("return document.getElementById('within').textContent"), "in layers.10 on rank2 \u00d7")


def wide_map(browser):
    browser.click("#show-map")
    browser.wait("the map", "document.querySelectorAll('.layer canvas').length > 0")
    check(browser.run("return document.querySelectorAll('.layer').length") < 60, "only visible layers are elements")
    check(browser.run("return window.report.map.shown.length") < 140, "a thousand layers stand together in ranges")
    seen = browser.run("return [...document.querySelectorAll('.layer')].filter((line) => line.getBoundingClientRect().top < document.getElementById('map').getBoundingClientRect().bottom - 20).map((line) => line.querySelector('.label').textContent)")
    check("532" in seen, f"the map begins where something is introduced: {seen}")
    line = browser.run("return window.report.map.shown.findIndex((layer) => layer.label === '32 \u2026 63')")
    check(line > 0, "there are ranges")
    took = browser.run("const start = performance.now(); window.report.map.pick(arguments[0], { type: 'keydown', target: {} }); return performance.now() - start", line)
    print(f"# filtering by a range took {took:.0f} ms")
    check_equal("rows of 32 layers on 64 ranks", browser.run(f"return {KEPT}"), "4,096 of 128,000 rows")
    check(browser.run("return document.documentElement.scrollWidth <= 1280"), "nothing is wider than the window")
    browser.size(400, 900)
    browser.wait("cells of three pixels", "window.report.map.across < 6")
    check(browser.run("return document.documentElement.scrollWidth <= 400"), "nothing is wider than a narrow window")


def unexplained(browser):
    """Rows that no rule judges have an entry in the legend, with the colour of their points."""
    legend = browser.run("return document.querySelector('#curve .legend').innerText")
    for part in ("unexplained: more than rounding explains, and no rule could judge it", "introduced: "):
        check(part in legend, f"{part!r} is in the legend: {legend}")
    check("propagated" not in legend, legend)
    key, chip = browser.run("return ['.key.unexplained', '.chip.unexplained .swatch'].map((one) => getComputedStyle(document.querySelector(one)).backgroundColor)")
    check(contrast_of(key, chip) < 1.01, f"the legend has {key}, the chip {chip}")


def counts_steps(browser):
    text = browser.run("return document.getElementById('origins').textContent")
    check(text.endswith("in 224 rows of 2 steps."), text)
    check_equal("steps", browser.run("return [...document.querySelectorAll('#step-chips .chip')].map((chip) => chip.textContent)"), ["step0", "step1"])
    check_equal("ranks", browser.run("return document.querySelectorAll('#rank-chips .chip').length"), 0)
    check_equal("map", browser.run("return document.getElementById('show-map').textContent"), "Layers by steps")
    browser.click("#step-chips .chip[data-value='1']")
    browser.wait("a step alone", f"{KEPT}.startsWith('121 of ')")


def write_unexplained(scratch):
    """An input of a module that differs, which no rule judges, before an error."""
    for side, other, value in (("target", 5.5, 7.0), ("golden", 5.0, 6.0)):
        def entry(name, inputs, output):
            return {name: {"input_args": [tensor(one) for one in inputs], "input_kwargs": {}, "output": [tensor(output)]}}

        call, module = "Functional.linear.0.forward", "Module.block.Block.forward.0"
        write_rank(scratch / "dumps" / side, entry(call, [2.0], 3.0) | entry(module, [2.0, other], 3.0) | entry("Torch.mul.0.forward", [3.0], value),
                   construct={call: module, module: None, "Torch.mul.0.forward": None})
    return scratch / "dumps" / "target", scratch / "dumps" / "golden"


def make_tests(msprobe, samples, diagnosis):
    samples = pathlib.Path(samples).resolve()
    runs = data(diagnosis, "runs") / "runs"
    pair = samples / "target", samples / "golden"

    def made(write, *arguments):
        return lambda scratch: write_report(msprobe, scratch, *write(scratch / "dumps", *arguments))

    of_table = [partial(test, msprobe=msprobe, samples=samples) for test in (curve_shows_the_relative_distance, curve_shows_the_error)]
    two_faults = made(write_model, 3, 12, TWO_FAULTS)
    return [
        *shown(of_pair(msprobe, *pair), from_curve, from_curve_by_keyboard, *of_table),
        *shown(two_faults, second_fault, map_of_ranks),
        *shown(made(write_model, 64, 1000, {(17, 532): 3e-2, (40, 801): 2e-2}), wide_map),
        *shown(of_pair(msprobe, *(runs / name / "statistics" for name in EXCHANGED)), counts_steps),
        *shown(made(write_unexplained), unexplained),
    ]


main(make_tests)
