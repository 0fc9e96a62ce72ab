#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTML report in headless Chromium: what a person does with it by mouse and by keyboard.

usage: report_browser.py MSPROBE SAMPLES GENERATOR DIAGNOSIS-CASES

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import pathlib
import subprocess
import sys
from functools import partial

import harness
from browser import Browser, check_quiet
from dumps import tensor, write_rank
from harness import check, check_equal, data
from report_file import HOSTILE, write_hostile
from report_reader import (DOWN, ENTER, ENTRY, ESCAPE, EXCHANGED, KEPT, LONG_PATH, RIGHT, SPACE, contrast_of, entry_opens,
                           of_pair, shown, write_report)

FIRST_BAD = "Functional.layer_norm.3.forward.input.4"


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
    """Rows that were left out do not count as agreement."""
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
    browser.wait("the row after the first bad one", f"{told} === 'step0/rank0 Functional.layer_norm.3.forward.output.0'")
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


def pair_of_the_culprit(browser, samples):
    first = browser.run("return document.querySelector('#notes li').textContent")
    check("tile/step0/rank1/dump.json against golden" in first.replace(str(samples) + "/", "") and first.endswith("(tensor), one of 2 pairs"), first)


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


def address_keeps_the_selection(msprobe, scratch, samples):
    page = write_report(msprobe, scratch, samples / "target", samples / "golden")
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
        # An address may name anything.
        for bad in ("#row=a", "#row=%ZZ+%00", "#sort=__proto__+x&only=constructor%3Dx+origin+&step=__proto__&layer=toString+x", "#within=__proto__+x&layer=nobody&view=other", "#row=<img src=x>+b&words=<b>"):
            browser.open(page, bad)
            check(browser.run("return document.getElementById('entry').hidden"), f"{bad} opens nothing")
            check_equal("images", browser.run("return document.images.length"), 0)
        check_quiet(browser)


def old_browser(msprobe, scratch, samples):
    page = write_report(msprobe, scratch, samples / "target", samples / "golden")
    with Browser() as browser:
        browser.driver.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
        )
        browser.driver.get(page.as_uri())
        text = browser.wait("a message", "document.querySelector('#loading.failed')?.textContent")
        check("lacks DecompressionStream" in text, text)


def without_scripts(msprobe, scratch, samples):
    """A reader without scripts sees the answer, how to see more, and nothing that waits for a script."""
    page = write_report(msprobe, scratch, samples / "target", samples / "golden")
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


def write_named(scratch):
    """Names that differ at their ends: those of a column's width, and longer ones."""
    for side in ("target", "golden"):
        data = {}
        for module in ("Module.blocks.1.down.Linear", "Module.blocks.1.att.proj.Linear", LONG_PATH.format(1)):
            data[f"{module}.parameters_grad"] = {part: [tensor(0.5) | {"shape": [4]}] for part in ("weight", "bias")}
        write_rank(scratch / side / "step0" / "rank0", data)
    return scratch / "target", scratch / "golden"


def make_tests(msprobe, samples, generator, diagnosis):
    samples, runs = pathlib.Path(samples).resolve(), data(diagnosis, "runs") / "runs"
    pair = samples / "target", samples / "golden"
    sample_report = of_pair(msprobe, *pair)

    def large_report(scratch):
        dumps = scratch / "dumps"
        subprocess.run([sys.executable, generator, "statistics", dumps, "--apis", "20000"], check=True, stdout=subprocess.DEVNULL)
        return write_report(msprobe, scratch, dumps / "target", dumps / "golden")

    return [
        *shown(sample_report, verdict_and_panel, filters, sorting, from_tree, from_tree_by_keyboard, from_table_by_keyboard, colours,
               names_are_copied, by_keyboard, keys_from_the_start, contrast),
        *shown(of_pair(msprobe, *pair, "--first"), stopped),
        *shown(sample_report, light_and_dark, dark=True),
        *shown(sample_report, narrow, width=400),
        *shown(of_pair(msprobe, *pair, "--python-rules"), as_by_python_rules),
        *shown(of_pair(msprobe, *(runs / name / "statistics" for name in EXCHANGED)), only_in_golden),
        *shown(lambda scratch: write_report(msprobe, scratch, *write_named(scratch)), names_to_their_ends, width=1500),
        *shown(of_pair(msprobe, samples / "tile", samples / "golden"), partial(pair_of_the_culprit, samples=samples)),
        *shown(large_report, large),
        *shown(lambda scratch: write_report(msprobe, scratch, *write_hostile(scratch / "hostile")), hostile),
        *harness.tests_of_script(msprobe=msprobe, samples=samples),
    ]


harness.main(make_tests)
