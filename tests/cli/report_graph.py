#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The graph of the HTML report in headless Chromium: its boxes and edges, by mouse, keyboard and address.

usage: report_graph.py MSPROBE

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

from browser import Browser, check_quiet
from dumps import tensor, write_rank
from harness import check, check_equal, main
from report_file import write_hostile
from report_reader import DOWN, ENTER, ENTRY, ESCAPE, LEFT, RIGHT, SPACE, UP, contrast_of, entry_opens, shown, write_report

CHOSEN = "window.report.graph?.chosen?.title"
LABELS = "[...document.querySelectorAll('.gbox .label')].map((one) => one.textContent)"
LOOK = ("const one = document.querySelector('.gbox.selected'); return [one.querySelector('.label').textContent,"
        " one.querySelector('.side').textContent, getComputedStyle(one).borderTopStyle]")
SHOW_SIDE = "const { graph } = window.report; const node = graph.tree.boxes.find((one) => one.side === arguments[0]); graph.chosen = node; graph.goTo(node)"
CULPRIT = "Functional.gelu.5.forward"


class Model:
    """Records a small transformer on one side of a rank, and by itself notes who takes what from whom."""

    def __init__(self, side, rank, layers, micro_steps=1, lost=None):
        self.side, self.rank, self.lost = side, rank, lost
        self.data, self.construct, self.calls, self.edges = {}, {}, {}, set()
        self.value = 1 + rank / 7
        for step in range(micro_steps):
            self.run(layers, step)

    def off(self, made):
        value, error, _ = made
        return tensor(value) | {"shape": [16, 16], "Max": value * (1 + error), "Min": -value, "Mean": 0.1, "Norm": 8 * value}

    def operation(self, api, around, *taken, direction="forward", **others):
        number = self.calls.get((api, direction), 0)
        self.calls[api, direction] = number + 1
        name = f"{api}.{number}.{direction}"
        error = max(error for _, error, _ in taken)
        if self.side == "target":
            error = 0.3 if (self.rank, name) == (1, CULPRIT) else max(error, 1e-7)
        self.value += 1e-3
        self.edges |= {(giver, name) for _, _, giver in taken if giver}
        made = (self.value, error, name)
        inputs = [self.off(one) for one in taken]
        self.data[name] = {"input_args": inputs, "input_kwargs": others, "output": [self.off(made)]} if direction == "forward" else {"input": inputs, "output": [self.off(made)]}
        self.construct[name] = around
        return made

    def run(self, layers, step):
        data, top, back = (0.5 + step, 0, None), f"Module.net.GPT.forward.{step}", f"Module.net.GPT.backward.{step}"
        self.construct |= {top: None, back: None}
        x = self.operation("Functional.embedding", top, data)
        for layer in range(layers):
            block = f"Module.net.layers.{layer}.Block.forward.{step}"
            self.construct[block] = top
            h = self.operation("Functional.layer_norm", block, x)
            h = self.operation("Functional.gelu", block, h)
            if (self.side, layer) == self.lost:
                h = self.operation("Functional.dropout", block, h)
            x = self.operation("Tensor.__add__", block, x, h)
        x = self.operation("Distributed.all_reduce", top, x, group={"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "g"})
        self.data[top] = {"input_args": [self.off(data)], "input_kwargs": {}, "output": [self.off(x)]}
        gradient = (0.9 + step, 0, None)
        for layer in reversed(range(layers)):
            block = f"Module.net.layers.{layer}.Block.backward.{step}"
            self.construct[block] = back
            gradient = self.operation("Functional.gelu", block, gradient, direction="backward")
        self.data[back] = {"input": [self.off((0.9 + step, 0, None))], "output": [self.off(gradient)]}


def write_models(folder, layers=8, **others):
    for side in ("target", "golden"):
        for rank in range(2):
            model = Model(side, rank, layers, **others)
            write_rank(folder / side / "step0" / f"rank{rank}", model.data, construct=model.construct)
    return folder / "target", folder / "golden"


def make_tests(msprobe):
    def report(scratch, *options, **others):
        return write_report(msprobe, scratch, *write_models(scratch / "dumps", **others), *options)

    def tests_of(*functions, make_report=report, **window):
        ready = "window.report.graph?.partners && document.querySelector('.gbox')"
        return shown(make_report, *functions, address="#view=graph", ready=ready, **window)

    def begins_at_the_culprit(browser):
        check_equal("chosen", browser.run(f"return {CHOSEN}"), CULPRIT)
        selected = browser.run("const one = document.querySelector('.gbox.selected'); const [a, b] = [one, document.getElementById('boxes')].map((it) => it.getBoundingClientRect());"
                               " return [one.querySelector('.label').textContent, one.querySelector('.badge').textContent, one.classList.contains('introduced'), a.top > b.top && a.bottom < b.bottom]")
        check_equal("the box in sight", selected, ["Functional.gelu.5", "culprit", True, True])
        check_equal("rank", browser.run("return document.getElementById('graph-rank').selectedOptions[0].textContent"), "step0/rank1")
        labels = browser.run(f"return {LABELS}")
        check_equal("order of execution", labels, [
            "forward", "Module.net.GPT.0", "Functional.embedding.0", "layers.0\u20137.Block.0", "layers.0.Block.0", "layers.1.Block.0", "layers.2.Block.0", "layers.3.Block.0",
            "layers.4.Block.0", "layers.5.Block.0", "Functional.layer_norm.5", "Functional.gelu.5", "Tensor.__add__.5", "layers.6.Block.0", "layers.7.Block.0",
            "Distributed.all_reduce.0", "backward", "Module.net.GPT.0"])

    def lies_within(browser):
        """A box is inside of the frame of the box around it, and below what ran before it."""
        places = browser.run(
            "const { lines } = window.report.graph.tree; return lines.map((node) => [node.label, node.top, node.bottom, node.parent?.line ?? -1, window.report.graph.left(node)])")
        for i, (label, top, bottom, parent, left) in enumerate(places):
            check(top < bottom, f"{label} has a height")
            if i > 0:
                check(top > places[i - 1][1], f"{label} is below {places[i - 1][0]}")
            if parent >= 0:
                check(top > places[parent][1] and bottom < places[parent][2] and left > places[parent][4], f"{label} is in {places[parent][0]}")

    def colours_of_closed_boxes(browser):
        browser.run("document.querySelectorAll('#graph button')[1].click()")
        check_equal("closed", browser.run(f"return {LABELS}"), ["forward", "Module.net.GPT.0", "backward", "Module.net.GPT.0"])
        look = browser.run("return [...document.querySelectorAll('.gbox.module')].map((one) => [one.classList.contains('introduced'), one.querySelector('.badge')?.textContent ?? ''])")
        check_equal("the worst inside", look[1], [True, "culprit inside"])
        check_equal("and where all is well", look[3], [False, ""])

    def edges_are_those_of_the_model(scratch):
        page = report(scratch)
        with Browser() as browser:
            browser.open(page, "#view=graph")
            for rank in range(2):
                browser.run("window.report.graph.choose(null, window.report.comparison.ranks[arguments[0]])", rank)
                found = browser.run("const { boxes, edges } = window.report.graph.tree; return [...Array(edges.size)].map((_, i) => [boxes[edges.from[i]].title, boxes[edges.to[i]].title])")
                expected = Model("target", rank, 8).edges
                # A module takes what its first operation takes.
                own = {tuple(edge) for edge in found if not edge[1].startswith("Module.")}
                check_equal("edges", sorted(own), sorted(expected))
            browser.run("const { graph } = window.report; graph.tree.boxes.forEach((one) => (one.open = true)); graph.lay(); graph.box.scrollTop = 0; graph.draw()")
            check(browser.run("return document.querySelectorAll('#boxes path').length") > 0, "edges are drawn")
            browser.run("const { graph } = window.report; graph.choose(graph.comparison.ranks[1].groupNamed(arguments[0], false).first, graph.comparison.ranks[1])", CULPRIT)
            check(browser.run("return document.querySelector('#boxes path.chosen') !== null"), "those of the chosen box stand out")
            check_quiet(browser)

    def by_keyboard(browser):
        browser.run("document.getElementById('boxes').focus()")
        active = "document.querySelector('.gbox.active .label')?.textContent"
        browser.keys(DOWN)
        check_equal("down", browser.run(f"return {active}"), "Tensor.__add__.5")
        browser.keys(UP, LEFT)
        check_equal("left goes to the box around", browser.run(f"return {active}"), "layers.5.Block.0")
        expanded = "document.querySelector('.gbox.active').getAttribute('aria-expanded')"
        check_equal("open", browser.run(f"return {expanded}"), "true")
        browser.keys(LEFT)
        check_equal("closed by left", browser.run(f"return {expanded}"), "false")
        browser.keys(SPACE)
        check_equal("opened by the space bar", browser.run(f"return {expanded}"), "true")
        browser.keys(RIGHT, DOWN, ENTER)
        entry_opens(browser, CULPRIT + ".input.0")
        browser.keys(ESCAPE)
        browser.wait("closing", "document.getElementById('entry').hidden && document.activeElement.id === 'boxes'")
        browser.keys("c")
        check_equal("copied", browser.clipboard(), CULPRIT)
        check_equal("what the reader hears", browser.run("return document.getElementById(document.getElementById('boxes').getAttribute('aria-activedescendant')).title.split('\\n')[0]"), CULPRIT)

    def by_mouse(browser):
        browser.click(".gbox.selected .label")
        entry_opens(browser, CULPRIT + ".input.0")
        browser.run("document.querySelector('.gbox[title^=\"Tensor.__add__.5\"]').click()")
        name = browser.wait("opening", f"({ENTRY}).startsWith('Tensor.__add__.5.forward') && {ENTRY}")
        browser.wait("it is chosen in the graph too", f"{CHOSEN} === 'Tensor.__add__.5.forward'")
        check("Tensor.__add__.5.forward" in browser.run("return decodeURIComponent(location.hash)"), name)
        browser.run("window.report.open(window.report.comparison.rowNamed('step0/rank0', 'Functional.gelu.2.forward.output.0'))")
        browser.wait("what is opened elsewhere is shown", f"{CHOSEN} === 'Functional.gelu.2.forward'")
        check_equal("on its rank", browser.run("return window.report.graph.tree.rank.label"), "step0/rank0")

    def partner(browser):
        browser.run("window.report.graph.choose(window.report.comparison.ranks[1].groupNamed('Distributed.all_reduce.0.forward', false).first, window.report.comparison.ranks[1])")
        check_equal("mark", browser.run("return document.querySelector('.gbox.selected .partner').textContent"), "\u21c4 rank0")
        browser.click(".gbox.selected .partner")
        browser.wait("the other rank", "window.report.graph.tree.rank.label === 'step0/rank0'")
        check_equal("its operation", browser.run(f"return {CHOSEN}"), "Distributed.all_reduce.0.forward")
        browser.run("document.getElementById('boxes').focus()")
        browser.keys("p")
        browser.wait("and back", "window.report.graph.tree.rank.label === 'step0/rank1'")

    def address_of_a_box(scratch):
        page = report(scratch)
        with Browser() as browser:
            browser.open(page, "#view=graph&box=step0%2Frank0+backward+Functional.gelu.3.backward")
            browser.wait("the box", f"{CHOSEN} === 'Functional.gelu.3.backward'")
            check_equal("on its rank", browser.run("return window.report.graph.tree.rank.label"), "step0/rank0")
            browser.run("const { graph } = window.report; graph.pick(graph.tree.named('backward', 'Module.net.GPT.backward.0'))")
            address = browser.run("return location.hash")
            browser.open(page, address)
            browser.wait("the same again", f"{CHOSEN} === 'Module.net.GPT.backward.0'")
            browser.open(page, "#view=graph&box=step0%2Frank7+forward+nothing")
            check_equal("what is not there is left out", browser.run(f"return {CHOSEN}"), CULPRIT)
            check_quiet(browser)

    def search(browser):
        browser.keys("/", *"layer_norm")
        browser.wait("matches", "document.querySelector('.steps-of [role=status]').textContent === '8 match'")
        check(browser.run("return document.querySelector('.gbox.selected').classList.contains('dim')"), "what does not match steps back")
        browser.run("document.querySelectorAll('.steps-of button')[1].click()")
        browser.wait("the next that matches", f"{CHOSEN} === 'Functional.layer_norm.6.forward'")
        check(not browser.run("return document.querySelector('.gbox.selected').classList.contains('dim')"), "what matches does not")
        browser.run("document.querySelectorAll('.steps-of button')[0].click()")
        browser.wait("the one before", f"{CHOSEN} === 'Functional.layer_norm.5.forward'")

    def micro_steps(browser):
        roots = browser.run("return window.report.graph.tree.roots.map((root) => [root.label, root.children.map((one) => one.title)])")
        check_equal("micro steps", roots, [[f"micro step {step} \u00b7 {one}", [f"Module.net.GPT.{one}.{step}"]] for step in range(2) for one in ("forward", "backward")])

    def one_side_only(browser):
        browser.run(SHOW_SIDE, "target")
        check_equal("target only", browser.run(LOOK), ["Functional.dropout.0", "target only", "dashed"])
        labels = browser.run("return window.report.graph.tree.lines.map((node) => node.label)")
        check("layers.2.Block.0" in labels, f"a run does not contain the layer that differs: {labels}")
        check("layers.3\u20137.Block.0" in labels, f"the layers after it are one: {labels}")

    def lost_in_golden(browser):
        browser.run(SHOW_SIDE, "golden")
        check_equal("golden only", browser.run(LOOK), ["Functional.dropout.0", "golden only", "dashed"])
        kinds = browser.run("return window.report.graph.tree.edges.kind.slice(0, window.report.graph.tree.edges.size).filter((kind) => kind === 0).length")
        check_equal("edges of the golden side to and from it", kinds, 2)

    def constant_report(scratch):
        for side in ("target", "golden"):
            data = {f"Torch.mul.{i}.forward": {"input_args": [tensor(0.5)], "input_kwargs": {}, "output": [tensor(0.5)]} for i in range(3)}
            write_rank(scratch / side / "step0" / "rank0", data)
        return write_report(msprobe, scratch, scratch / "target", scratch / "golden")

    def without_flow(browser):
        check("no edges" in browser.run("return document.getElementById('graph-note').innerText"), "the page says so")
        check_equal("operations", browser.run(f"return {LABELS}"), ["forward", "Torch.mul.0", "Torch.mul.1", "Torch.mul.2"])

    def looks(browser):
        """On both colour schemes: what is written on boxes can be read, and nothing is wider than the window."""
        for _ in range(2):
            pairs = browser.run("return [...document.querySelectorAll('.gbox:not(.opened):not(.dim) .label, .gbox .badge')].map((one) => [one.textContent, getComputedStyle(one).color, getComputedStyle(one.matches('.badge') ? one : one.parentNode).backgroundColor])")
            check(len(pairs) > 8, "boxes were looked at")
            for text, ink, fill in pairs:
                ratio = contrast_of(ink, fill)
                check(ratio >= 4.5, f"{text}: {ink} on {fill} is {ratio:.1f} to 1")
            width = browser.run("return [document.documentElement.scrollWidth, innerWidth, document.getElementById('boxes').scrollWidth - document.getElementById('boxes').clientWidth]")
            check(width[0] <= width[1] and width[2] <= 0, f"nothing is wider than the window: {width}")
            browser.click("#theme")

    def wide_report(scratch):
        for side in ("target", "golden"):
            data, construct = {}, {}
            for i in range(12000):
                name = f"Torch.mul.{i}.forward"
                data[name] = {"input_args": [tensor(1 + i / 1e4) | {"Min": -1}], "input_kwargs": {}, "output": [tensor(1 + (i + 1) / 1e4) | {"Min": -1}]}
                construct[name] = "Module.net.Net.forward.0"
            write_rank(scratch / side / "step0" / "rank0", data, construct=construct)
        return write_report(msprobe, scratch, scratch / "target", scratch / "golden")

    def large(browser):
        browser.run("const { graph } = window.report; const [root] = graph.tree.roots; if (!root.children[0].open) graph.toggle(root.children[0])")
        check_equal("boxes", browser.run("return window.report.graph.tree.lines.length"), 12002)
        check(browser.run("return document.querySelectorAll('#boxes *').length") < 800, "only what is in sight is drawn")
        browser.run("document.getElementById('boxes').focus()")
        browser.keys("\ue010")  # End
        browser.wait("the last", "[...document.querySelectorAll('.gbox .label')].at(-1).textContent === 'Torch.mul.11999'")

    def hostile_report(scratch):
        return write_report(msprobe, scratch, *write_hostile(scratch / "hostile"))

    def hostile(browser):
        browser.run("const { graph } = window.report; graph.tree.boxes.forEach((one) => (one.open = true)); graph.lay()")
        texts = browser.run(f"return {LABELS}")
        check(any("<img src=x" in text for text in texts), "markup shows as text")
        check(not any("\u202e" in text for text in texts), "marks of direction are spelt out")
        check_equal("title", browser.run("return document.title"), "msprobe compare")
        check_equal("images", browser.run("return document.images.length"), 0)

    return [
        *tests_of(begins_at_the_culprit, lies_within, colours_of_closed_boxes, by_keyboard, by_mouse, partner, search, looks),
        ("edges_are_those_of_the_model", edges_are_those_of_the_model),
        ("address_of_a_box", address_of_a_box),
        *tests_of(micro_steps, make_report=lambda scratch: report(scratch, micro_steps=2)),
        *tests_of(one_side_only, make_report=lambda scratch: report(scratch, lost=("target", 2))),
        *tests_of(lost_in_golden, make_report=lambda scratch: report(scratch, lost=("golden", 4))),
        *tests_of(without_flow, make_report=constant_report),
        *(("narrow", test) for _, test in tests_of(looks, width=400, dark=True)),
        *tests_of(large, make_report=wide_report),
        *tests_of(hostile, make_report=hostile_report),
    ]


main(make_tests)
