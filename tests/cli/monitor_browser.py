#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of monitor report in headless Chromium: what it says first, what it shows, by mouse and by keyboard.

usage: monitor_browser.py MSPROBE

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import math

import monitor_trees
from browser import Browser, check_quiet
from harness import check, check_equal, main, run

SPIKE = 150
HEADLINE = "document.querySelector('#verdict span:last-child').textContent"
TOLD = "document.getElementById('told').textContent"
CHIP = "document.querySelector('.chip[aria-pressed=true]').dataset.quantity"
HOSTILE = ["</script><script>document.title='owned'</script>", "<img src=x onerror=document.title='owned'>", "\u202edrawkcab", "__proto__"]


def tree(folder, name, layers=12, steps=260, **more):
    return monitor_trees.write_tree(folder / name, monitor_trees.Training(layers, steps, **more), ("actv", "grad_reduced", "param_updated"), per_file=100)


def page(msprobe, scratch, *arguments):
    result = run(msprobe, ["-q", "monitor", "report", *arguments, "-o", "report.html"], scratch)
    check_equal("exit status", (result.returncode, result.stderr), (0, ""))
    return scratch / "report.html"


def make_tests(msprobe):
    def one_run(scratch):
        tree(scratch, "bad", spike=SPIKE)
        with Browser() as browser:
            browser.open(page(msprobe, scratch, "bad"))
            headline = browser.run(f"return {HEADLINE}")
            check(f"from step {SPIKE + 1} on" in headline, headline)
            check(f"step {SPIKE + 1}" in browser.run("return document.querySelector('.event').textContent"), "the first event")
            check("alert" in browser.run("return document.getElementById('events-told').textContent"), "alerts are counted")
            check(browser.run("return window.report.heat.alerts.length") > 0, "alerts are marked on the map")
            check_quiet(browser)

    def two_runs(scratch):
        tree(scratch, "good")
        tree(scratch, "bad", rounding=1, spike=SPIKE)
        with Browser(dark=True) as browser:
            browser.open(page(msprobe, scratch, "good", "bad"))
            check(browser.run(f"return {HEADLINE}").startswith(f"The runs part at step {SPIKE}: param_updated"), "headline")
            check_equal("quantity", browser.run(f"return {CHIP}"), "param_updated")
            told = browser.run(f"return {TOLD}")
            check(told.startswith(f"step {SPIKE}, layers.2.attention.weight: run 1: ") and "run 2: " in told, told)
            check_equal("lines", browser.run("return window.report.course.lines.length"), 2)
            check_quiet(browser)

    def numbers_are_those_of_the_files(scratch):
        training = tree(scratch, "bad", spike=SPIKE)
        check(training is not None, "written")
        with Browser() as browser:
            browser.open(page(msprobe, scratch, "bad"))
            browser.click('[data-quantity="grad_reduced"]')
            browser.wait("the quantity", f"{CHIP} === 'grad_reduced'")
            rows = browser.run(
                "const { cells, block } = window.report;"
                "return block.names.map((name, row) => [name, block.steps.map((_, column) => String(cells.value(0, row, column)))])"
            )
        again = monitor_trees.Training(12, 260, spike=SPIKE)
        expected = {name: [] for name, _ in rows}
        for step in range(260):
            again.advance(step)
            for quantity in ("actv", "grad_reduced", "param_updated"):
                for layer in range(12):
                    norm = again.row(quantity, layer, step)[0]
                    if quantity == "grad_reduced":
                        expected[monitor_trees.names(quantity, layer)].append(norm)
        for name, values in rows:
            for step, (shown, real) in enumerate(zip(values, expected[name])):
                got = float(shown)
                near = math.isnan(got) if math.isnan(real) else abs(got - real) <= 0.005 * abs(real) + 1e-6
                check(near, f"{name}, step {step}: {got} for {real}")

    def by_keyboard(scratch):
        tree(scratch, "bad", spike=SPIKE)
        with Browser() as browser:
            browser.open(page(msprobe, scratch, "bad"))
            before = browser.run(f"return {TOLD}")
            browser.keys("n")
            browser.wait("the next event", f"{TOLD} !== {before!r}")
            browser.run("document.querySelector('#heat canvas').focus()")
            row = browser.run("return window.report.chosen.row")
            browser.keys("\ue015" if row < 5 else "\ue013")
            browser.wait("moving", f"window.report.chosen.row === {row + 1 if row < 5 else row - 1}")
            browser.keys("+")
            browser.wait("zooming", "window.report.view.x[1] - window.report.view.x[0] < 200")
            browser.keys("0")
            browser.wait("all of it", "window.report.view.x[1] - window.report.view.x[0] >= 260")
            browser.keys("/", "layers.3")
            browser.wait("search", "window.report.heat.order.length === 2")
            check_quiet(browser)

    def an_address_shows_the_same(scratch):
        tree(scratch, "bad", spike=SPIKE)
        with Browser() as browser:
            written = page(msprobe, scratch, "bad")
            browser.open(written)
            browser.click('[data-quantity="param_updated"]')
            browser.wait("the quantity", f"{CHIP} === 'param_updated' && location.hash.includes('param_updated')")
            address = browser.run("return location.hash")
            browser.open(written, address)
            check_equal("quantity", browser.run(f"return {CHIP}"), "param_updated")
            browser.open(written, "#q=nothing&row=9-x&x=5-1")
            check(browser.run(f"return {HEADLINE}") != "", "a wrong address is passed over")
            check_quiet(browser)

    def hostile_names(scratch):
        rank = scratch / "one" / "Jan01_00-00-00-rank0-00000000"
        rank.mkdir(parents=True)
        rows = [f'0,"{name}",{step},{1 + step / 10}' for step in range(20) for name in HOSTILE]
        (rank / "grad_reduced_0-99.csv").write_text("\n".join(["vpp_stage,name,step,norm", *rows]) + "\n")
        with Browser() as browser:
            browser.open(page(msprobe, scratch, "one"))
            check_equal("title", browser.run("return document.title"), "msprobe monitor")
            check_equal("rows", browser.run("return window.report.block.names.length"), len(HOSTILE))
            check_quiet(browser)

    def narrow(scratch):
        """Nothing lies over anything else, sticks out of its panel or is wider than the window, on phones and half screens."""
        tree(scratch, "good")
        tree(scratch, "bad", rounding=1, spike=SPIKE)
        written = page(msprobe, scratch, "good", "bad")
        for width in (400, 700):
            for dark in (False, True):
                with Browser(width=width, dark=dark) as browser:
                    browser.open(written)
                    check(browser.too_wide() <= 0, f"the page is {browser.too_wide()} pixels wider than a window of {width}")
                    parts = "#top, #top .line > *, #bar, #bar > *, main > section, #loss, #heat, #legend, #told, #course, #events > *, footer"
                    check_equal(f"parts over each other at {width}", browser.overlapping(parts), [])
                    check_equal(f"parts that stick out at {width}", browser.sticking_out("main > section > *, #heat canvas, #legend > span", "section"), [])
                    heights = browser.run("return ['loss', 'heat', 'course', 'list'].map((id) => document.getElementById(id).clientHeight)")
                    check(min(heights) >= 100, f"there is room for every part: {heights}")
                    browser.run("document.getElementById('list').scrollIntoView()")
                    browser.click("#list .event:nth-child(3)")
                    browser.wait("choosing an event by a click", "document.querySelector('#list .event:nth-child(3)').classList.contains('active')")
                    check_quiet(browser)

    def many_steps_in_groups(scratch):
        """A single NaN among many steps stays in sight where steps are grouped."""
        rank = scratch / "one" / "Jan01_00-00-00-rank0-00000000"
        rank.mkdir(parents=True)
        training = monitor_trees.random.Random(1)
        rows = [f"0,w{row},{step},{'nan' if (step, row) == (13333, 7) else repr(math.exp(training.gauss(0, 0.3)))}" for step in range(20000) for row in range(8)]
        (rank / "grad_reduced_0-99999.csv").write_text("\n".join(["vpp_stage,name,step,norm", *rows]) + "\n")
        written = page(msprobe, scratch, "one", "--max-size", "0.1")
        check(written.stat().st_size < 250_000, f"{written.stat().st_size} bytes")
        with Browser() as browser:
            browser.open(written)
            check("13333" in browser.run(f"return {HEADLINE}"), "headline")
            check("groups of" in browser.run("return document.getElementById('notes').textContent"), "told")
            seen = browser.run("const { fine, coarse } = window.report.cells.paint('usual', 0); return [fine.includes(255), coarse.paint.includes(255)]")
            check_equal("NaN", seen, [True, True])
            check_quiet(browser)

    return [(function.__name__, function) for function in (
        one_run, two_runs, numbers_are_those_of_the_files, by_keyboard, an_address_shows_the_same, hostile_names, narrow, many_steps_in_groups)]


if __name__ == "__main__":
    main(make_tests)
