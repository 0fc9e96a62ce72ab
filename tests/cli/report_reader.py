# SPDX-License-Identifier: Apache-2.0
"""The tests of the HTML report in headless Chromium share this: they make a report, open it and look for what may never go wrong."""

import re

from browser import Browser, check_quiet
from dumps import tensor, write_rank
from harness import check_equal, run

KEPT = "document.getElementById('kept').textContent"
ENTRY = "!document.getElementById('entry').hidden && document.querySelector('#entry h2').textContent"
TWO_FAULTS = {(0, 4): 2e-2, (2, 4): 2e-2, (1, 9): 3e-2}  # by rank and layer
EXCHANGED = "tiny-silu_for_gelu-21-plain", "tiny-21-avx512"  # runs of tests/data/diagnosis
LONG_PATH = "Module.decoder.block.{}.with_a_path_that_is_far_longer_than_any_column_of_a_table_can_be.inner.attention.Linear"
ENTER, ESCAPE, LEFT, UP, RIGHT, DOWN, SPACE = "\ue007", "\ue00c", "\ue012", "\ue013", "\ue014", "\ue015", " "


def write_report(msprobe, scratch, target, golden, *options):
    out = scratch / "out"
    result = run(msprobe, ["-q", "compare", "-tp", target, "-gp", golden, "-o", out, "--format", "html", *options], scratch)
    check_equal("exit status", result.returncode, 0)
    (page,) = out.glob("*.html")
    return page


def entry_opens(browser, name):
    browser.wait(f"opening of {name}", f"{ENTRY} === {name!r}")


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
            write_rank(folder / side / f"step{step}" / f"rank{rank}", data, construct=construct)
    return folder / "target", folder / "golden"


def contrast_of(*colors):
    """The colours are written as the browser computes them: rgb(), or color(srgb) where it mixed them."""
    lights = []
    for color in colors:
        parts = [float(part) for part in re.findall(r"[0-9.]+(?:e-?[0-9]+)?", color.replace("srgb", ""))[:3]]
        scale = 1 if color.startswith("color") else 255
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (one / scale for one in parts)]
        lights.append(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def of_pair(msprobe, target, golden, *options):
    """Makes the report of these two."""
    return lambda scratch: write_report(msprobe, scratch, target, golden, *options)


def name_of(function):
    return getattr(function, "func", function).__name__  # of a partial one


def shown(make_report, *functions, address="", ready=None, **window):
    """(name, function of a scratch folder) for each of these functions of an open report."""
    def test_of(function):
        def test(scratch):
            with Browser(**window) as browser:
                took = browser.open(make_report(scratch), address)
                print(f"# {name_of(function)}: can be used after {took} ms")
                if ready is not None:
                    browser.wait("being ready", ready)
                function(browser)
                check_quiet(browser)

        return test

    return [(name_of(function), test_of(function)) for function in functions]
