#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in headless Chromium: what a person does with it by mouse and by keyboard.

usage: report_browser.py MSPROBE SAMPLES GENERATOR

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import csv
import io
import pathlib
import subprocess
import sys

from browser import Browser
from harness import check, check_equal, main, run
from report_file import HOSTILE, write_hostile

FIRST_BAD = "Functional.layer_norm.3.forward.input.4"
KEPT = "document.getElementById('kept').textContent"
ENTRY = "!document.getElementById('entry').hidden && document.querySelector('#entry h2').textContent"
ENTER, ESCAPE, RIGHT, DOWN, TAB = "\ue007", "\ue00c", "\ue014", "\ue015", "\ue004"


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


def make_tests(msprobe, samples, generator):
    samples = pathlib.Path(samples).resolve()
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
        check("argument input.4 is 1e-05, golden 1e-06" in answer, answer)
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
        check("56 left out, behind the first certain evidence" in notes, notes)
        chips = browser.run("return document.getElementById('verdict-chips').textContent")
        check("warning 56" in chips, chips)

    def filters(browser):
        check_equal("rows", browser.run(f"return {KEPT}"), "210 rows")
        browser.click('.chip[data-kind="verdict"][data-value="0"]')
        check_equal("without pass", browser.run(f"return {KEPT}"), "4 of 210 rows")
        browser.click('.chip[data-kind="rank"][data-value="1"]')
        check_equal("of rank 0", browser.run(f"return {KEPT}"), "2 of 210 rows")
        check_equal("rows shown", browser.run("return document.querySelectorAll('#table .row').length"), 2)
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
        table = subprocess.run(
            [msprobe, "-q", "compare", "-tp", samples / "target", "-gp", samples / "golden", "-o", "-"],
            check=True, capture_output=True, text=True,
        ).stdout
        expected = {}
        for row in csv.DictReader(io.StringIO(table)):
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
        browser.run("const menu = document.getElementById('metric'); menu.value = 'MaxAbsErr'; menu.dispatchEvent(new Event('change'))")
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

    def large_report(scratch):
        dumps = scratch / "dumps"
        subprocess.run([sys.executable, generator, "statistics", dumps, "--apis", "20000"], check=True, stdout=subprocess.DEVNULL)
        return write_report(msprobe, scratch, dumps / "target", dumps / "golden")

    def large(browser):
        check_equal("rows", browser.run(f"return {KEPT}"), "100,000 rows")
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

    sample_tests = [verdict_and_panel, filters, sorting, from_curve, curve_shows_the_relative_distance, from_curve_by_keyboard, from_tree, from_tree_by_keyboard, from_table_by_keyboard]
    return [
        *((function.__name__, test(function, sample_report)) for function in sample_tests),
        ("stopped", test(stopped, stopped_report)),
        ("light_and_dark", test(light_and_dark, sample_report, dark=True)),
        ("narrow", test(narrow, sample_report, width=400)),
        ("large", test(large, large_report)),
        ("hostile", test(hostile, hostile_report)),
        ("old_browser", old_browser),
    ]


if __name__ == "__main__":
    main(make_tests)
