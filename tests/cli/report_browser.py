#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in headless Chromium: what a person does with it by mouse and by keyboard.

usage: report_browser.py MSPROBE SAMPLES GENERATOR DIAGNOSIS-CASES

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import csv
import io
import pathlib
import re
import subprocess
import sys

from browser import Browser
from harness import check, check_equal, data, main, run
from report_file import HOSTILE, tensor, write_dump, write_hostile

FIRST_BAD = "Functional.layer_norm.3.forward.input.4"
KEPT = "document.getElementById('kept').textContent"
ENTRY = "!document.getElementById('entry').hidden && document.querySelector('#entry h2').textContent"
TWO_FAULTS = {(0, 4): 2e-2, (2, 4): 2e-2, (1, 9): 3e-2}  # by rank and layer
LONG_PATH = "Module.decoder.block.{}.with_a_path_that_is_far_longer_than_any_column_of_a_table_can_be.inner.attention.Linear"
ENTER, ESCAPE, RIGHT, DOWN, SPACE = "\ue007", "\ue00c", "\ue014", "\ue015", " "


def write_report(msprobe, scratch, target, golden, *options):
    out = scratch / "out"
    result = run(msprobe, ["-q", "compare", "-tp", target, "-gp", golden, "-o", out, "--format", "html", *options], scratch)
    check_equal("exit status", result.returncode, 0)
    (page,) = out.glob("*.html")
    return page


def check_quiet(browser):
    """Nothing went wrong on the page, and it asked nobody for anything."""
    check_equal("console", browser.complaints(), [])
    foreign, all_requests = browser.requests()
    check_equal("requests", foreign, [])
    check(all_requests, "the log of requests has the page itself")
    check_equal("resources", browser.run("return performance.getEntriesByType('resource').map(r => r.name)"), [])


def entry_opens(browser, name):
    browser.wait(f"opening of {name}", f"{ENTRY} === {name!r}")


def table_of(msprobe, target, golden):
    text = subprocess.run([msprobe, "-q", "compare", "-tp", target, "-gp", golden, "-o", "-"], check=True, capture_output=True, text=True).stdout
    return list(csv.DictReader(io.StringIO(text)))


def write_model(folder, ranks, layers, faults, step=0):
    """Two dumps of a step: a chain of layers on each rank. `faults`: by rank and layer, the error that begins there."""
    def off_by(value, error):
        return tensor(value) | {"shape": [16, 16], "Max": value * (1 + error), "Min": -value, "Mean": 0.1, "Norm": 8 * value}

    for side in ("target", "golden"):
        for rank in range(ranks):
            data, construct, error, last = {}, {}, 0, off_by(0.5, 0)
            for layer in range(layers):
                error = max(error, faults.get((rank, layer), 1e-7)) if side == "target" else 0
                out = off_by(1 + (rank * layers + layer) / 9973, error)  # numbers with all their digits
                name = f"Functional.linear.{layer}.forward"
                data[name] = {"input_args": [last], "input_kwargs": {}, "output": [out]}
                construct[name] = f"Module.layers.{layer}.Block.forward.0"
                last = out
            write_dump(folder / side / f"step{step}" / f"rank{rank}", data, construct=construct)
    return folder / "target", folder / "golden"


def contrast_of(*colors):
    """Of two colours as the browser computes them: rgb(), or color(srgb) of what was mixed."""
    lights = []
    for color in colors:
        parts = [float(part) for part in re.findall(r"[0-9.]+(?:e-?[0-9]+)?", color.replace("srgb", ""))[:3]]
        scale = 1 if color.startswith("color") else 255
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (one / scale for one in parts)]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def make_tests(msprobe, samples, generator, diagnosis):
    samples = pathlib.Path(samples).resolve()
    runs = data(diagnosis, "runs") / "runs"
    def sample_report(scratch):
        return write_report(msprobe, scratch, samples / "target", samples / "golden")

    def stopped_report(scratch):
        return write_report(msprobe, scratch, samples / "target", samples / "golden", "--first")

    def test(function, make_report, **window):
        def run_test(scratch):
            with Browser(**window) as browser:
                took = browser.open(make_report(scratch))
                print(f"# {function.__name__}: can be used after {took} ms")
                function(browser)
                check_quiet(browser)

        return run_test

    def verdict_and_panel(browser):
        headline = browser.run("return [...document.querySelectorAll('#verdict > *')].map((one) => one.textContent)")
        check_equal("headline", headline, ["culprit", "Functional.layer_norm.3.forward"])
        answer = browser.run("return document.getElementById('answer').textContent")
        check("argument eps (input.4) is 1e-05, golden 1e-06" in answer, answer)
        rules = browser.run("return document.getElementById('origins').textContent")
        check(rules.endswith("By the rules: 4 errors and 0 warnings in 210 rows on 2 ranks."), rules)
        browser.click("#verdict button")
        browser.wait("opening", "!document.getElementById('entry').hidden")
        browser.keys(ESCAPE)
        browser.wait("closing", "document.getElementById('entry').hidden")
        check_equal("first", browser.run("return document.querySelector('#first button').textContent"), FIRST_BAD)
        browser.click("#first button")
        entry_opens(browser, FIRST_BAD)
        text = browser.run("return document.getElementById('entry').innerText")
        for part in ("The scalar parameters of NPU and Bench are inconsistent.", "1e-5", "1e-6", "decoder.py:44 in forward", "Functional.linear.6.forward"):
            check(part in text, f"{part!r} is in the panel")
        browser.keys(ESCAPE)
        browser.wait("closing", "document.getElementById('entry').hidden")

    def stopped(browser):
        """What was left out is no agreement."""
        rules = browser.run("return document.getElementById('origins').textContent")
        check(rules.endswith("By the rules: 4 errors and 0 warnings in 154 rows on 2 ranks, and 56 left out."), rules)
        notes = browser.run("return document.getElementById('notes').textContent")
        check("56 left out, after the first certain evidence" in notes, notes)
        chips = browser.run("return document.getElementById('verdict-chips').textContent")
        check("warning 56" in chips, chips)

    def filters(browser):
        check_equal("rows", browser.run(f"return {KEPT}"), "210 rows")
        browser.click('.chip[data-kind="verdict"][data-value="2"]')
        check_equal("errors", browser.run(f"return {KEPT}"), "4 of 210 rows")
        browser.click('.chip[data-kind="rank"][data-value="0"]')
        check_equal("of rank 0", browser.run(f"return {KEPT}"), "2 of 210 rows")
        check_equal("rows shown", browser.run("return document.querySelectorAll('#table .row').length"), 2)
        browser.click('.chip[data-kind="rank"][data-value="1"]')
        check_equal("of both ranks", browser.run(f"return {KEPT}"), "4 of 210 rows")
        browser.click('.chip[data-kind="verdict"][data-value="2"]')
        check_equal("taken back", browser.run(f"return {KEPT}"), "210 rows")
        browser.click('.chip[data-kind="rank"][data-value="1"]')
        browser.click("#clear")
        check_equal("cleared", browser.run(f"return {KEPT}"), "210 rows")
        browser.keys("/")
        browser.keys(*"LAYER_NORM output")
        browser.wait("search", f"{KEPT} === '10 of 210 rows'")
        browser.keys(ESCAPE)
        browser.wait("clearing", f"{KEPT} === '210 rows'")

    def sorting(browser):
        names = "[...document.querySelectorAll('#table .head .cell')].map(c => c.textContent)"
        place = browser.run(f"return {names}").index("MaxAbsErr") + 1
        browser.click(f"#table .head .cell:nth-child({place})")
        values = browser.run(f"return [...document.querySelectorAll('#table .row .cell:nth-child({place})')].slice(0, 8).map(c => Number(c.title))")
        check(values[0] > 0.01, f"the worst comes first: {values}")
        check_equal("order", values, sorted(values, reverse=True))

    def from_curve(browser):
        # Where the first output of an error is drawn, by the report's own axes.
        place = browser.run(
            "const plot = window.report.curve.plots[0]; const [series] = plot.series;"
            "const i = series.rows.findIndex((row) => series.rank.verdicts[row] === 2);"
            "return [plot.x(i), window.report.curve.y(plot, series.values[i])];"
        )
        browser.click("#curve canvas", place)
        entry_opens(browser, "Functional.layer_norm.3.forward.output.0")

    def curve_shows_the_relative_distance(browser):
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

    def from_tree(browser):
        labels = "[...document.querySelectorAll('#tree .node')]"
        index = browser.run(f"return {labels}.findIndex((node) => node.title.startsWith('Functional.layer_norm.3.forward'))")
        check(index > 0, "the tree is open to the first bad entry")
        browser.click(f"#tree .node[data-line='{index}'] .label")
        entry_opens(browser, "Functional.layer_norm.3.forward.input.0")
        check_equal("rows of the entry", browser.run(f"return {KEPT}"), "12 of 210 rows")

    def from_tree_by_keyboard(browser):
        browser.run("document.getElementById('tree').focus()")
        browser.keys(DOWN, DOWN, DOWN, RIGHT, DOWN, ENTER)
        entry_opens(browser, "Functional.embedding.0.forward.input.0")

    def from_table_by_keyboard(browser):
        browser.run("document.getElementById('table').focus()")
        browser.keys(DOWN, ENTER)
        name = browser.wait("opening", ENTRY)
        check_equal("row after the first bad one", name, "Functional.layer_norm.3.forward.output.0")
        browser.keys(ESCAPE, DOWN, ENTER)
        browser.wait("opening of the next", f"({ENTRY}) && {ENTRY} !== {name!r}")

    def light_and_dark(browser):
        page_color = "getComputedStyle(document.body).backgroundColor"
        dark = browser.run(f"return {page_color}")
        browser.click("#theme")
        light = browser.run(f"return {page_color}")
        brightness = [sum(map(int, color[4:-1].split(","))) for color in (dark, light)]
        check(brightness[0] < 200 < 600 < brightness[1], f"dark {dark}, light {light}")

    def narrow(browser):
        check(browser.run("return document.documentElement.scrollWidth <= 400"), "nothing is wider than the window")
        browser.click("#first button")
        entry_opens(browser, FIRST_BAD)
        check(browser.run("return document.documentElement.scrollWidth <= 400"), "nor with an entry open")

    def colours(browser):
        rows = browser.run(
            "return [...document.querySelectorAll('#table .row')].map((row) => ({"
            " origin: row.querySelector('.badge').textContent, mark: row.classList[1], tint: getComputedStyle(row).getPropertyValue('--tint'),"
            " color: getComputedStyle(row).backgroundColor, error: Number(row.children[4].title) }))"
        )
        seen = {row["origin"]: row for row in rows}
        check({"equal", "rounding", "introduced", "propagated"} <= seen.keys(), f"the table shows {sorted(seen)}")
        for row in rows:
            check_equal("mark", row["mark"], row["origin"].replace(" ", "-"))
        check_equal("colours", len({row["color"] for row in seen.values()}), len(seen))
        propagated = sorted((row["error"], int(row["tint"][:-1])) for row in rows if row["origin"] == "propagated" and row["error"] > 0)
        check(propagated[0][1] < propagated[-1][1], f"the larger error has more colour: {propagated}")
        nodes = "[...document.querySelectorAll('#tree .node')]"
        culprit = browser.run(f"return {nodes}.find((node) => node.title.startsWith('Functional.layer_norm.3.forward')).className")
        check("introduced" in culprit and "blamed" in culprit, culprit)
        check(browser.run(f"return {nodes}.some((node) => node.classList.contains('rounding'))"), "rounding has its colour in the tree")
        check_equal("green", browser.run("return document.querySelectorAll('.node.pass, .row.pass').length"), 0)
        browser.click("#origin-chips .chip.introduced")
        browser.wait("what is introduced", f"{KEPT} === '4 of 210 rows'")

    def as_by_python_rules(browser):
        check_equal("headline", browser.run("return document.getElementById('verdict').innerText.replace(/\\s+/g, ' ')"), "error 4 errors and 0 warnings in 210 rows on 2 ranks")
        check_equal("first column", browser.run("return document.querySelector('#table .head .cell').textContent"), "Result")
        check(browser.run("return document.querySelectorAll('#table .row.pass').length > 3 && document.querySelectorAll('#tree .node.pass').length > 3"), "what passes is as it was")
        check_equal("chips", browser.run("return document.querySelectorAll('#origin-chips .chip').length"), 0)
        for id_ in ("answer", "show-map", "map"):
            check(browser.run(f"return document.getElementById('{id_}').hidden"), f"{id_} is not shown")
        check_equal("metric", browser.run("return document.getElementById('metric').value"), "EucDist / Bench l2norm")

    def curve_shows_the_error(browser):
        table = [row for row in table_of(msprobe, samples / "target", samples / "golden") if row["Rank"] == "rank0"]
        shown = browser.run(
            "const [series] = window.report.curve.plots[0].series; const { rank } = series;"
            "return series.rows.map((row, i) => [rank.name(row), series.values[i], rank.explained[row]])"
        )
        expected = {row["NPU Name"]: row for row in table if ".forward.output" in row["NPU Name"]}
        check_equal("errors", {name: f"{error:.4e}" for name, error, _ in shown}, {name: f"{float(row['Error']):.4e}" for name, row in expected.items()})
        for name, error, explained in shown:
            introduced = expected[name]["Origin"] == "introduced"
            check_equal(f"{name} lies above the band: {error} {explained}", error >= explained, introduced) if explained is not None else None
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

    def two_faults_report(scratch):
        return write_report(msprobe, scratch, *write_model(scratch / "dumps", 3, 12, TWO_FAULTS))

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

    def wide_report(scratch):
        return write_report(msprobe, scratch, *write_model(scratch / "dumps", 64, 1000, {(17, 532): 3e-2, (40, 801): 2e-2}))

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

    def exchanged_report(scratch):
        return write_report(msprobe, scratch, runs / "tiny-silu_for_gelu-21-plain" / "statistics", runs / "tiny-21-avx512" / "statistics")

    def only_in_golden(browser):
        shown = browser.run(
            "const [rank] = window.report.comparison.ranks; return rank.groups.slice(0, 12).map((group) => "
            "(rank.isOnlyGolden(group.first) ? 'golden ' : '') + rank.entries[group.entry])"
        )
        place = shown.index("golden Functional.gelu.0.forward")
        check_equal("neighbours", shown[place - 1 : place + 3], ["Module.up.Linear.forward.0", "golden Functional.gelu.0.forward", "golden Module.act.GELU.forward.0", "Functional.silu.0.forward"])
        check_equal("rows", browser.run(f"return {KEPT}"), "224 rows + 18 only in golden")
        check_equal("chip", browser.run("return document.querySelector('.chip.only-golden').textContent"), "only in golden 18")
        notes = browser.run("return document.getElementById('notes').textContent")
        check("18 only in golden" in notes, notes)
        browser.click("#table .row.only-golden")
        name = browser.wait("opening", ENTRY)
        text = browser.run("return document.getElementById('entry').innerText")
        check("GELU" in name or "gelu" in name, name)
        check("only golden has this entry" in text and "the target has nothing like it" in text, text)
        check("pass" not in browser.run("return document.querySelector('#entry .buttons').innerText"), "what is missing does not pass")
        nodes = browser.run("return [...window.report.tree.nodes.values()].filter((node) => /gelu|GELU/.test(node.title) && node.parent.label !== 'backward').map((node) => [node.title, GRADES[node.worst()].name])")
        check(["Module.act.GELU.forward.0 (only in golden)", "only in golden"] in nodes, f"{nodes}")

    def counts_steps(browser):
        text = browser.run("return document.getElementById('origins').textContent")
        check(text.endswith("in 224 rows of 2 steps."), text)
        check_equal("steps", browser.run("return [...document.querySelectorAll('#step-chips .chip')].map((chip) => chip.textContent)"), ["step0", "step1"])
        check_equal("ranks", browser.run("return document.querySelectorAll('#rank-chips .chip').length"), 0)
        check_equal("map", browser.run("return document.getElementById('show-map').textContent"), "Layers by steps")
        browser.click("#step-chips .chip[data-value='1']")
        browser.wait("a step alone", f"{KEPT}.startsWith('121 of ')")

    def address_keeps_the_selection(scratch):
        page = sample_report(scratch)
        name = "Functional.linear.6.forward.output.0"
        with Browser() as browser:
            browser.open(page)
            browser.keys("/", *"linear")
            browser.wait("search", f"{KEPT}.includes(' of 210 rows')")
            browser.click("#rank-chips .chip[data-value='0']")
            browser.click("#origin-chips .chip.rounding")
            browser.click("#origin-chips .chip.propagated")
            browser.run("window.report.table.sortBy('Error'); window.report.open(window.report.comparison.rowNamed('step0/rank0', arguments[0]))", name)
            browser.run("window.report.chooseNode(null); window.report.show('map')")
            kept, address = browser.run(f"return [{KEPT}, location.hash]")
            check("row=step0%2Frank0+" + name in address and "sort=Error+down" in address and "view=map" in address, address)
            browser.open(page, address)
            entry_opens(browser, name)
            check_equal("rows", browser.run(f"return {KEPT}"), kept)
            check_equal("words", browser.run("return document.getElementById('search').value"), "linear")
            check_equal("sorted", browser.run("return document.querySelector('[aria-sort=descending]').textContent"), "Error")
            check_equal("chosen", browser.run("return [...document.querySelectorAll('.chip[aria-pressed=true]')].map((chip) => chip.dataset.kind)"), ["origin", "origin", "rank"])
            check(not browser.run("return document.getElementById('map').hidden"), "the map is shown again")
            check_equal("address", browser.run("return location.hash"), address)
            browser.run("location.hash = '#row=step0%2Frank1+' + arguments[0]", name)
            browser.wait("going to another address", f"document.querySelector('#entry .buttons').innerText.includes('step0/rank1') && {KEPT} === '210 rows'")
            browser.keys(ESCAPE)
            browser.wait("closing", "document.getElementById('entry').hidden && location.hash === '#' || location.hash === ''")
            # What an address names may be anything.
            for bad in ("#row=a", "#row=%ZZ+%00", "#sort=__proto__+x&only=constructor%3Dx+origin+&step=__proto__&layer=toString+x", "#within=__proto__+x&layer=nobody&view=other", "#row=<img src=x>+b&words=<b>"):
                browser.open(page, bad)
                check(browser.run("return document.getElementById('entry').hidden"), f"{bad} opens nothing")
                check_equal("images", browser.run("return document.images.length"), 0)
            check_quiet(browser)

    def names_are_copied(browser):
        browser.click("#place .copy")
        browser.wait("telling", "document.getElementById('said').textContent === 'copied Functional.layer_norm.3.forward'")
        check_equal("clipboard", browser.clipboard(), "Functional.layer_norm.3.forward")
        browser.run("document.getElementById('table').focus()")
        browser.keys(DOWN, "c")
        browser.wait("telling", "document.getElementById('said').textContent === 'copied Functional.layer_norm.3.forward.output.0'")
        check_equal("clipboard", browser.clipboard(), "Functional.layer_norm.3.forward.output.0")
        browser.run("window.report.open(0)")
        browser.run("document.querySelector('#entry .copy').focus()")
        browser.keys(ENTER)
        browser.wait("telling", "document.getElementById('said').textContent === 'copied Functional.embedding.0.forward.input.0'")

    def by_keyboard(browser):
        browser.run("[...document.querySelectorAll('#table .head .cell')].find((cell) => cell.textContent === 'Error').focus()")
        browser.keys(ENTER)
        browser.wait("sorting", "document.querySelector('[aria-sort=descending]')?.textContent === 'Error'")
        check(browser.run("return document.getElementById('entry').hidden"), "a header sorts and opens nothing")
        browser.run("document.getElementById('show-curve').focus()")
        browser.keys(RIGHT)
        browser.wait("the map", "!document.getElementById('map').hidden && document.activeElement.id === 'show-map'")
        browser.run("document.querySelector('#origin-chips .chip.equal').focus()")
        browser.keys(SPACE)
        browser.wait("a chip", f"{KEPT} === '64 of 210 rows'")
        unnamed = browser.run(
            "return [...document.querySelectorAll('button, input, select, summary, [tabindex=\"0\"]')].filter((one) => one.offsetParent !== null"
            " && !one.textContent.trim() && !one.getAttribute('aria-label') && !one.closest('label')).map((one) => one.outerHTML)"
        )
        check_equal("controls without a name", unnamed, [])

    def keys_from_the_start(browser):
        """Arrows and Enter mean the rows as long as nothing else has the focus, also behind a click and with an entry open."""
        active = "window.report.comparison.at(window.report.table.current())"
        browser.keys(DOWN)
        told = f"(() => {{ const {{ rank, row }} = {active}; return rank.label + ' ' + rank.name(row); }})()"
        browser.wait("the row behind the first bad one", f"{told} === 'step0/rank0 Functional.layer_norm.3.forward.output.0'")
        browser.keys(ENTER)
        entry_opens(browser, "Functional.layer_norm.3.forward.output.0")
        browser.keys(DOWN)
        browser.wait("the next row", f"{told} !== 'step0/rank0 Functional.layer_norm.3.forward.output.0'")
        name = browser.run(f"return {told}").split(" ", 1)[1]
        browser.keys(ENTER)
        entry_opens(browser, name)
        browser.keys(ESCAPE)
        browser.wait("closing", "document.getElementById('entry').hidden")
        place = browser.run(f"return [{told}, document.getElementById('table').scrollTop]")
        check(place[1] > 0, f"the rows are scrolled: {place}")
        browser.keys(ESCAPE)
        check_equal("nothing is left to close", browser.run(f"return [{told}, document.getElementById('table').scrollTop]"), place)
        browser.click("#table .row:nth-child(12)")
        first = browser.wait("opening by a click", ENTRY)
        browser.keys(DOWN, ENTER)
        browser.wait("opening of the next", f"({ENTRY}) && {ENTRY} !== {first!r}")
        chosen = browser.run(f"return {told}")
        browser.keys(ESCAPE, "/", *chosen.split(".")[1])
        browser.wait("search", f"{KEPT}.includes(' of 210 rows')")
        browser.run("window.report.table.reveal(arguments[0])", browser.run("return window.report.comparison.rowNamed(...arguments[0].split(' '))", chosen))
        browser.keys(ESCAPE)
        browser.wait("clearing", f"{KEPT} === '210 rows'")
        check_equal("the row stays chosen", browser.run(f"return {told}"), chosen)

    def named_report(scratch):
        """Names that differ at their ends: those of a column's width, and longer ones."""
        for side in ("target", "golden"):
            data = {}
            for module in ("Module.blocks.1.down.Linear", "Module.blocks.1.att.proj.Linear", LONG_PATH.format(1)):
                data[f"{module}.parameters_grad"] = {part: [tensor(0.5) | {"shape": [4]}] for part in ("weight", "bias")}
            write_dump(scratch / side / "step0" / "rank0", data)
        return write_report(msprobe, scratch, scratch / "target", scratch / "golden")

    def names_to_their_ends(browser):
        cells = browser.run(
            "return [...document.querySelectorAll('#table .row .cell.name')].map((cell) => { const inner = cell.querySelector('bdi').getBoundingClientRect();"
            " const outer = cell.getBoundingClientRect(); return [cell.textContent, cell.title, inner.left - outer.left, outer.right - inner.right]; })"
        )
        check_equal("rows", len(cells), 6)
        check_equal("whole names", [text for text, title, *_ in cells], [title for text, title, *_ in cells])
        for text, _, left, right in cells:
            check(right >= 0, f"the end of the name is in its column: {text} {right}")
            check_equal(f"cut at the beginning: {text}", left < 0, text.startswith(LONG_PATH.format(1)))

    def tile_report(scratch):
        return write_report(msprobe, scratch, samples / "tile", samples / "golden")

    def pair_of_the_culprit(browser):
        first = browser.run("return document.querySelector('#notes li').textContent")
        check("tile/step0/rank1/dump.json against golden" in first.replace(str(samples) + "/", "") and first.endswith("(tensor), one of 2 pairs"), first)

    def large_report(scratch):
        dumps = scratch / "dumps"
        subprocess.run([sys.executable, generator, "statistics", dumps, "--apis", "20000"], check=True, stdout=subprocess.DEVNULL)
        return write_report(msprobe, scratch, dumps / "target", dumps / "golden")

    def large(browser):
        check_equal("rows", browser.run(f"return {KEPT}"), "100,000 rows + 397 only in golden")
        check(browser.run("return document.querySelectorAll('#table .row').length") < 200, "only visible rows are elements")
        browser.run("const box = document.getElementById('table'); box.scrollTop = box.scrollHeight")
        browser.wait("the last row", "[...document.querySelectorAll('#table .row')].at(-1)?.getAttribute('aria-rowindex') === '100000'")
        browser.keys("/", *"gelu.77.forward.output")
        browser.wait("search", f"{KEPT}.includes(' of 100,000 rows')")
        browser.click('#table .row')
        browser.wait("opening", ENTRY)
        browser.keys(ESCAPE, ESCAPE)
        took = browser.run("const start = performance.now(); window.report.table.sortBy('NormRelativeErr'); window.report.apply(); return performance.now() - start")
        print(f"# sorting and filtering took {took:.0f} ms")

    def hostile(browser):
        check_equal("title", browser.run("return document.title"), "msprobe compare")
        check_equal("images", browser.run("return document.images.length"), 0)
        texts = browser.run("return [...document.querySelectorAll('#table .row .cell.name')].map((cell) => cell.title)")
        check(HOSTILE[0] + ".output.0" in texts, "markup shows as text")
        check(any("\\u202e" in text for text in texts) and not any("\u202e" in text for text in texts), "marks of direction show")
        for id_ in range(len(HOSTILE) * 2):
            browser.run("window.report.open(arguments[0])", id_)
        browser.keys("/", *"onerror")
        browser.wait("search", f"{KEPT} === '2 of {len(HOSTILE) * 2} rows'")
        check_equal("title", browser.run("return document.title"), "msprobe compare")
        check_equal("images", browser.run("return document.images.length"), 0)

    def contrast(browser):
        """Badges can be read on both themes: WCAG asks for 4.5 to 1."""
        for _ in range(2):
            pairs = browser.run(
                "return [...new Set([...document.querySelectorAll('.badge')])].map((one) => [one.textContent, getComputedStyle(one).color, getComputedStyle(one).backgroundColor])"
            )
            for text, ink, fill in pairs:
                ratio = contrast_of(ink, fill)
                check(ratio >= 4.5, f"{text}: {ink} on {fill} is {ratio:.1f} to 1")
            check(len({text for text, *_ in pairs}) > 4, "badges of several kinds were looked at")
            browser.click("#theme")

    def hostile_report(scratch):
        return write_report(msprobe, scratch, *write_hostile(scratch / "hostile"))

    def old_browser(scratch):
        page = sample_report(scratch)
        with Browser() as browser:
            browser.driver.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
            )
            browser.driver.get(page.as_uri())
            text = browser.wait("a message", "document.querySelector('#loading.failed')?.textContent")
            check("lacks DecompressionStream" in text, text)

    def without_scripts(scratch):
        """A reader without scripts sees the answer, how to see more, and nothing that waits for a script."""
        page = sample_report(scratch)
        with Browser() as browser:
            browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
            browser.driver.get(page.as_uri())
            nodes = browser.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
            text = "\n".join(node["name"]["value"] for node in nodes if node.get("role", {}).get("value") == "StaticText" and "name" in node)
            browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        for part in ("culprit: Functional.layer_norm.3.forward", "argument eps (input.4) is 1e-05, golden 1e-06", "210 rows: ", "allow scripts"):
            check(part in text, f"{part!r} shows: {text}")
        for part in ("Unpacking", "Model", "keys:"):
            check(part not in text, f"{part!r} shows: {text}")

    def unexplained_report(scratch):
        """An input of a module that differs, which no rule judges, before an error."""
        for side, other, value in (("target", 5.5, 7.0), ("golden", 5.0, 6.0)):
            def entry(name, inputs, output):
                return {name: {"input_args": [tensor(one) for one in inputs], "input_kwargs": {}, "output": [tensor(output)]}}

            call, module = "Functional.linear.0.forward", "Module.block.Block.forward.0"
            write_dump(scratch / "dumps" / side, entry(call, [2.0], 3.0) | entry(module, [2.0, other], 3.0) | entry("Torch.mul.0.forward", [3.0], value),
                       construct={call: module, module: None, "Torch.mul.0.forward": None})
        return write_report(msprobe, scratch, scratch / "dumps" / "target", scratch / "dumps" / "golden")

    def unexplained(browser):
        """Rows that no rule judges have an entry in the legend, with the colour of their points."""
        legend = browser.run("return document.querySelector('#curve .legend').innerText")
        for part in ("unexplained: more than rounding explains, and no rule could judge it", "introduced: "):
            check(part in legend, f"{part!r} is in the legend: {legend}")
        check("propagated" not in legend, legend)
        key, chip = browser.run("return ['.key.unexplained', '.chip.unexplained .swatch'].map((one) => getComputedStyle(document.querySelector(one)).backgroundColor)")
        check(contrast_of(key, chip) < 1.01, f"the legend has {key}, the chip {chip}")

    def python_rules_report(scratch):
        return write_report(msprobe, scratch, samples / "target", samples / "golden", "--python-rules")

    sample_tests = [verdict_and_panel, filters, sorting, from_curve, curve_shows_the_relative_distance, from_curve_by_keyboard, from_tree, from_tree_by_keyboard, from_table_by_keyboard, colours, curve_shows_the_error, names_are_copied, by_keyboard, keys_from_the_start, contrast]
    return [
        *((function.__name__, test(function, sample_report)) for function in sample_tests),
        ("stopped", test(stopped, stopped_report)),
        ("light_and_dark", test(light_and_dark, sample_report, dark=True)),
        ("narrow", test(narrow, sample_report, width=400)),
        ("as_by_python_rules", test(as_by_python_rules, python_rules_report)),
        ("second_fault", test(second_fault, two_faults_report)),
        ("map_of_ranks", test(map_of_ranks, two_faults_report)),
        ("wide_map", test(wide_map, wide_report)),
        ("only_in_golden", test(only_in_golden, exchanged_report)),
        ("counts_steps", test(counts_steps, exchanged_report)),
        ("names_to_their_ends", test(names_to_their_ends, named_report, width=1500)),
        ("pair_of_the_culprit", test(pair_of_the_culprit, tile_report)),
        ("address_keeps_the_selection", address_keeps_the_selection),
        ("large", test(large, large_report)),
        ("hostile", test(hostile, hostile_report)),
        ("old_browser", old_browser),
        ("without_scripts", without_scripts),
        ("unexplained", test(unexplained, unexplained_report)),
    ]


if __name__ == "__main__":
    main(make_tests)
