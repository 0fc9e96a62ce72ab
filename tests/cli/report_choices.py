#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Choices of a reader of the HTML report, in headless Chromium: rows by chips, a step, an editor, a narrow window.

usage: report_choices.py MSPROBE SAMPLES

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import pathlib

from browser import Browser, check_quiet
from dumps import tensor, write_rank
from harness import check, check_equal, main
from report_reader import ENTRY, ESCAPE, KEPT, LONG_PATH, TWO_FAULTS, of_pair, shown, write_model, write_report


def make_tests(msprobe, samples):
    samples = pathlib.Path(samples).resolve()

    sample_report = of_pair(msprobe, samples / "target", samples / "golden")

    def two_faults_report(scratch):
        return write_report(msprobe, scratch, *write_model(scratch / "dumps", 3, 12, TWO_FAULTS))

    def chips_show_what_is_clicked(browser):
        """A chip shows its own rows and no others, and none hides the row that is opened."""
        count = "window.report.comparison.ranks.reduce((sum, rank) => sum + [...rank[arguments[0]]].filter((one) => one === arguments[1]).length, 0)"
        chips = browser.run("return [...document.querySelectorAll('.chip[data-kind]')].filter((chip) => ['origin', 'verdict'].includes(chip.dataset.kind)).map((chip) => [chip.dataset.kind, Number(chip.dataset.value), chip.disabled])")
        check(len(chips) > 5, f"chips: {chips}")
        for kind, value, disabled in chips:
            expected = browser.run(f"return {count}", "grades" if kind == "origin" else "verdicts", value)
            check_equal(f"{kind} {value} can be clicked", not disabled, expected > 0)
            if disabled:
                continue
            browser.click(f'.chip[data-kind="{kind}"][data-value="{value}"]')
            shown = browser.run("const { comparison, table } = window.report; return [...table.order].map((id) => { const { rank, row } = comparison.at(id); return rank[arguments[0]][row]; })",
                                "grades" if kind == "origin" else "verdicts")
            check_equal(f"rows of {kind} {value}", (set(shown), len(shown)), ({value}, expected))
            browser.click(f'.chip[data-kind="{kind}"][data-value="{value}"]')
            check_equal("taken back", browser.run(f"return {KEPT}"), "210 rows")
        browser.click("#origin-chips .chip.equal")
        browser.click("#rank-chips .chip[data-value='1']")
        browser.click("#verdict button")
        name = browser.wait("opening", ENTRY)
        seen = browser.run("const { comparison, table } = window.report; const { rank, row } = comparison.at(table.current()); return [rank.label, rank.name(row)]")
        check_equal("the row of the headline", seen, ["step0/rank0", name])
        check_equal("chips", browser.run("return [...document.querySelectorAll('.chip[aria-pressed=true] span:last-child')].map((one) => one.textContent.replace(/ [0-9]+$/, ''))"),
                    ["introduced", "equal", "rank0", "rank1"])

    def steps_report(scratch):
        """The fault shows in step 1; from step 2 on everything has learnt from it."""
        for step, faults in enumerate(({}, {(0, 6): 2e-2}, {(0, 0): 0.1, (1, 0): 0.1}, {})):
            folders = write_model(scratch / "dumps", 2, 12, faults, step)
        return write_report(msprobe, scratch, *folders)

    # Pixels of the curve that have the colour of an error, left and right of the sixth entry.
    bad_pixels = (
        "const { curve } = window.report; const plot = curve.plots[0]; const ratio = devicePixelRatio;"
        "const middle = Math.round((plot.x(6) - 8) * ratio); const height = Math.round(plot.bottom * ratio);"
        "const { data, width } = plot.canvas.getContext('2d').getImageData(0, 0, plot.canvas.width, height);"
        "const wanted = ['introduced', 'propagated'].map((name) => { const probe = document.createElement('i'); probe.style.color = `var(--${name})`;"
        " document.body.append(probe); const color = getComputedStyle(probe).color.match(/[0-9]+/g).map(Number); probe.remove(); return color; });"
        "const found = [0, 0]; for (let i = 0; i < data.length; i += 4)"
        " if (wanted.some((color) => color.every((part, k) => Math.abs(part - data[i + k]) < 4))) ++found[(i / 4) % width < middle ? 0 : 1];"
        "return found;"
    )

    def one_step_at_a_time(browser):
        page = browser.run("return location.href")
        step = "document.getElementById('step').value"
        drawn = "[...new Set(window.report.curve.plots.flatMap((plot) => window.report.curve.visible(plot).map(({ rank }) => rank.label)))]"
        choose = "const menu = document.getElementById('step'); menu.value = arguments[0]; menu.dispatchEvent(new Event('change'))"
        check_equal("the culprit's step comes first", browser.run(f"return {step}"), "step1")
        check_equal("drawn", browser.run(f"return {drawn}"), ["step1/rank0", "step1/rank1"])
        left, right = browser.run(bad_pixels)
        check(left == 0 < right, f"errors left and right of the culprit: {left}, {right}")
        browser.run(choose, "step2")
        check_equal("drawn", browser.run(f"return {drawn}"), ["step2/rank0", "step2/rank1"])
        left, right = browser.run(bad_pixels)
        check(left > 0 and right > 0, f"errors of step 2: {left}, {right}")
        check("step=step2" in browser.run("return location.hash"), "the address keeps the step")
        nearest = browser.run("const { curve } = window.report; const [plot] = curve.plots; return Array.from({ length: 40 }, (_, i) => curve.nearest(plot, 62 + i * 20, 60).series.rank.about.step)")
        check_equal("what the pointer finds", set(nearest), {"step2"})
        browser.run("window.report.open(window.report.comparison.rowNamed('step3/rank1', 'Functional.linear.4.forward.output.0'))")
        check_equal("the step of what is opened", browser.run(f"return {step}"), "step3")
        browser.keys(ESCAPE)
        browser.click("#step-chips .chip[data-value='0']")
        check_equal("the step of the chip", browser.run(f"return [{step}, {drawn}]"), ["step0", ["step0/rank0", "step0/rank1"]])
        check_equal("steps to choose", browser.run("return [...document.getElementById('step').options].filter((one) => !one.disabled).map((one) => one.value)"), ["step0"])
        browser.click("#verdict button")
        browser.wait("the culprit's step again", f"{step} === 'step1'")
        browser.open(pathlib.Path(page.split("#")[0].removeprefix("file://")), "#step=step3")
        check_equal("the address shows the step", browser.run(f"return {step}"), "step3")

    def one_step_has_no_menu(browser):
        check(browser.run("return document.getElementById('of-step').hidden"), "a single step needs no choice")

    def long_labels_report(scratch):
        """Names far longer than any column, on several steps and ranks."""
        for side in ("target", "golden"):
            for step in (10000, 10001):
                for rank in (100, 101):
                    data = {f"{LONG_PATH.format(i)}.forward.0": {"input_args": [tensor(0.5)], "input_kwargs": {}, "output": [tensor(0.5 + i)]} for i in range(40)}
                    write_rank(scratch / side / f"step{step}" / f"rank{rank}", data)
        return write_report(msprobe, scratch, scratch / "target", scratch / "golden")

    def result_in_sight(browser):
        """Beside the name, without scrolling, whether an entry is open or not; and of the name its end."""
        for opened in (False, True):
            if opened:
                browser.run("window.report.open(3)")
                browser.wait("the narrower table", "document.querySelector('#table').getBoundingClientRect().right < 900")
            seen = browser.run(
                "const table = document.getElementById('table').getBoundingClientRect(); const heads = [...document.querySelectorAll('#table .head .cell')];"
                "const at = heads.findIndex((one) => one.textContent === 'Result'); const name = heads.findIndex((one) => one.textContent === 'NPU Name');"
                "const row = document.querySelector('#table .row'); const boxes = [heads[at], row.children[at], row.querySelector('.cell:nth-child(' + (at + 1) + ') .badge'), row.children[name].firstChild].map((one) => one.getBoundingClientRect());"
                "return [boxes.map(({ right }) => right - Math.min(table.right, innerWidth)), row.children[name].getBoundingClientRect().width]")
            check(max(seen[0]) <= 0, f"beyond the edge of the table: {seen}")
            check(seen[1] >= 190, f"there is room for a name: {seen}")

    def files_are_links(scratch):
        folder = "/srv/\u202ea b&line=9#?\"<img src=x onerror=document.title='owned'>/%2e"
        frames = [f"File {folder}/model.py, line 12, in forward, \n x = f(x)", "File javascript:alert(1), line 3, in g, \n g()", "File C:\\train\\a.py, line 4, in h, \n h()"]
        for side, value in (("target", 5.0), ("golden", 1.0)):
            name = "Functional.linear.0.forward"
            write_rank(scratch / side / "step0" / "rank0", {name: {"input_args": [tensor(1.0)], "input_kwargs": {}, "output": [tensor(value)]}}, stack={name: frames})
        page = write_report(msprobe, scratch, scratch / "target", scratch / "golden")
        links = "[...document.querySelectorAll('#entry .frames .source')].map((one) => one.getAttribute('href'))"
        choose = "const menu = document.getElementById('editor'); menu.value = arguments[0]; menu.dispatchEvent(new Event('change'))"
        quoted = "/srv/%E2%80%AEa%20b%26line%3D9%23%3F%22%3Cimg%20src%3Dx%20onerror%3Ddocument.title%3D'owned'%3E/%252e/model.py"
        with Browser() as browser:
            browser.open(page)
            browser.run("localStorage.clear()")
            browser.open(page)
            browser.run("window.report.open(0)")
            check_equal("off at first", browser.run(f"return [document.getElementById('editor').value, {links}]"), ["off", [None, None, None]])
            browser.run(choose, "vscode")
            expected = [f"vscode://file{quoted}:12", None, "vscode://file/C%3A/train/a.py:4"]
            check_equal("VS Code", browser.run(f"return {links}"), expected)
            text = browser.run("return document.querySelector('#entry .frames .source').textContent")
            check(text == folder.replace("\u202e", "\\u202e") + "/model.py:12", text)
            browser.open(page, "#row=step0%2Frank0+Functional.linear.0.forward.output.0")
            check_equal("kept", browser.run(f"return {links}"), expected)
            browser.run(choose, "idea")
            check_equal("IDEA", browser.run(f"return {links}"), [f"idea://open?file={quoted}&line=12", None, "idea://open?file=/C%3A/train/a.py&line=4"])
            where = browser.run("return [...document.querySelectorAll('#answer .source')].map((one) => [one.getAttribute('href'), one.textContent])")
            check_equal("where of the culprit", where, [[f"idea://open?file={quoted}&line=12", folder.replace("\u202e", "\\u202e") + "/model.py, line 12"]])
            browser.run(choose, "off")
            check_equal("off again", browser.run(f"return {links}"), [None, None, None])
            browser.run("localStorage.setItem('msprobe-editor', '__proto__')")
            browser.open(page)
            check_equal("what is stored may be anything", browser.run("return document.getElementById('editor').value"), "off")
            browser.run("localStorage.clear()")
            check_equal("title", browser.run("return document.title"), "msprobe compare")
            check_equal("images", browser.run("return document.images.length"), 0)
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no storage', 'SecurityError'); } })"})
            browser.open(page)
            browser.run("window.report.open(0)")
            browser.run(choose, "vscode")
            check_equal("without storage", browser.run(f"return {links}"), expected)
            check_quiet(browser)

    def copy_buttons_look_like_buttons(browser):
        browser.run("window.report.open(0)")
        looks = browser.run("return [...document.querySelectorAll('.copy')].map((one) => { const { borderTopStyle, borderTopWidth, borderTopColor, cursor } = getComputedStyle(one); return [borderTopStyle, parseFloat(borderTopWidth) >= 1, borderTopColor, cursor]; })")
        check(len(looks) >= 3, f"copy buttons: {looks}")
        for style, is_wide, color, cursor in looks:
            check((style, is_wide, cursor) == ("solid", True, "pointer") and not color.endswith(", 0)"), f"a copy button: {style}, {color}, {cursor}")

    def narrow(browser):
        for part, edge, place in (("verdict", "left", 10), ("settings", "right", browser.run("return innerWidth") - 10)):
            check_equal(f"{part} at the {edge}", browser.run("return Math.round(document.getElementById(arguments[0]).getBoundingClientRect()[arguments[1]])", part, edge), place)
        for view in ("curve", "map", "graph"):
            browser.run("window.report.show(arguments[0])", view)
            check(browser.too_wide() <= 0, f"nothing is wider than the window with the {view}")
            check_equal(f"parts over each other with the {view}", browser.overlapping("#top, #top .line > *, #bar, #bar > *, main > section, #views button, #of-curve label, footer"), [])
            check_equal(f"parts that stick out with the {view}", browser.sticking_out("#tree, #table, #curve, #map, #graph, #views, #of-curve", "section"), [])
        boxes = browser.run("return ['top', 'bar', 'error', 'rows', 'model'].map((id) => document.getElementById(id).getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])")
        for (_, above), (below, _) in zip(boxes, boxes[1:]):
            check(above <= below + 0.5, f"parts do not lie over each other: {boxes}")
        browser.run("window.report.open(1)")
        check(browser.run("const box = document.querySelector('#entry .scroll'); return box.scrollWidth <= box.clientWidth"), "the columns of both sides have room")
        check(browser.too_wide() <= 0, "nothing is wider than the window with an entry open")

    return [
        *shown(sample_report, chips_show_what_is_clicked, one_step_has_no_menu, copy_buttons_look_like_buttons),
        *shown(steps_report, one_step_at_a_time),
        *shown(long_labels_report, result_in_sight, width=1280),
        ("files_are_links", files_are_links),
        *((f"narrow_{width}_{name}", test) for width in (400, 700)
          for name, make_report in (("sample", sample_report), ("two_faults", two_faults_report), ("steps", steps_report))
          for _, test in shown(make_report, narrow, width=width, dark=width == 400)),
    ]


main(make_tests)
