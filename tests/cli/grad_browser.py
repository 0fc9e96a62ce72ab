#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of grad_compare in headless Chromium: whole in every window, and names that stay text.

usage: grad_browser.py MSPROBE

Skipped, and says so, where Chromium, its driver or Selenium is missing.
"""

import tensor_files
from browser import Browser
from harness import check, check_equal, main, run

PATH = "module.language_model.encoder.layers.{}.self_attention.query_key_value.weight"
HOSTILE = "w\" onload=document.title='owned'<img src=x onerror=document.title='owned'>\u202eback"


def record(folder, steps):
    """steps: step -> parameter -> signs, as task grad_probe writes them at level L1."""
    folder = folder / "rank0"
    for step, parameters in steps.items():
        signs = folder / f"step{step}"
        signs.mkdir(parents=True)
        for name, values in parameters.items():
            (signs / f"{name}.npy").write_bytes(tensor_files.npy("|b1", (len(values),), bytes(values)))
        rows = "".join(f"{name},1.0,-1.0,1.0,[{len(values)}]\r\n" for name, values in parameters.items())
        (folder / f"grad_summary_{step}.csv").write_bytes(b"\xef\xbb\xbf" + ("param_name,max,min,norm,shape\r\n" + rows).encode())


def make_tests(msprobe):
    def page(scratch, steps, names):
        signs = {step: {name: [1, 1, 1, 1] for name in names} for step in range(9000, 9000 + steps)}
        record(scratch / "a", signs)
        worse = {step: {name: [1, 1, 1, int(step < 9000 + steps // 2 or name != names[2])] for name in of} for step, of in signs.items()}
        record(scratch / "b", worse)
        run(msprobe, ["grad_compare", "a", "b", "-o", "out"], scratch, status=0)
        return scratch / "out" / "similarities.html"

    def whole_in_every_window(scratch):
        names = [PATH.format(layer) for layer in range(12)]
        for steps in (5, 300):
            written = page(scratch / str(steps), steps, names)
            for width in (400, 700, 1280, 1920):
                for dark in (False, True):
                    with Browser(width=width, dark=dark) as browser:
                        browser.driver.get(written.as_uri())
                        what = f"{steps} steps at {width}"
                        check(browser.too_wide() <= 0, f"{what}: wider than the window by {browser.too_wide()}")
                        check_equal(f"{what}: what sticks out", browser.sticking_out(".plot, .plot > *, .names > div, rect, circle, line", "section"), [])
                        check_equal(f"{what}: over each other", browser.overlapping(".names > div, .plot > svg:last-child, svg text, p, section"), [])
                        cells = browser.run("return [...document.querySelectorAll('rect.lost')].map((one) => one.getBoundingClientRect()).map(({ left, right }) => [left, right])")
                        plot = browser.run("return document.querySelector('.names + svg').getBoundingClientRect().toJSON()")
                        check(abs(min(left for left, _ in cells) - plot["left"]) < 1.5 and abs(max(right for _, right in cells) - plot["right"]) < 1.5, f"{what}: the cells fill the picture")
                        check(plot["width"] > 0.45 * width, f"{what}: the picture is {plot['width']} wide")
                        rows = browser.run("const [names, cells] = ['.names > div', 'rect.cell'].map((one) => [...document.querySelectorAll(one)].map((it) => it.getBoundingClientRect())); return names.map((name, i) => Math.abs((name.top + name.bottom - cells[i].top - cells[i].bottom) / 2))")
                        check(len(rows) == 12 and max(rows) <= 1, f"{what}: names stand beside their rows: {rows}")
                        ends = browser.run("return [...document.querySelectorAll('.names bdi')].map((one) => [one.getBoundingClientRect().right - one.parentElement.getBoundingClientRect().right, one.textContent])")
                        check(all(beyond <= 0 for beyond, _ in ends), f"{what}: the ends of names can be read: {ends}")
                        check_equal("console", browser.complaints(), [])

    def names_stay_text(scratch):
        with Browser() as browser:
            browser.driver.get(page(scratch, 4, ["a", HOSTILE.replace("/", ""), "c"]).as_uri())
            names = browser.run("return [...document.querySelectorAll('.names > div')].map((one) => [one.textContent, one.title])")
            check_equal("the name and its title", names[1], [HOSTILE.replace("\u202e", "\\u202e")] * 2)
            check_equal("title", browser.run("return document.title"), "msprobe grad_compare")
            check_equal("images and handlers", browser.run("return [document.images.length, document.querySelectorAll('[onload]').length]"), [0, 0])

    return [(function.__name__, function) for function in (whole_in_every_window, names_stay_text)]


if __name__ == "__main__":
    main(make_tests)
