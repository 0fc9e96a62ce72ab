#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes report.png, the picture of the sample dumps' report that the README shows.

usage: make_report.py MSPROBE        (needs the Debian packages chromium, chromium-driver, python3-selenium)
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from browser import Browser  # noqa: E402


def main():
    msprobe = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        page = pathlib.Path(scratch) / "report.html"
        samples = "data/samples"
        arguments = ["-tp", f"{samples}/tile", "-gp", f"{samples}/golden", "--format", "html", "--output-file", page]
        subprocess.run([msprobe, "-q", "compare", *arguments], cwd=ROOT, check=True)
        with Browser(width=1280, height=980) as browser:
            browser.open(page)
            # The output that the broken kernel spoils, with its curve and its stack.
            browser.run("window.report.open(window.report.table.order.find((id) => {"
                        "  const { rank, row } = window.report.comparison.at(id);"
                        "  return rank.name(row) === 'Functional.linear.6.forward.output.0' && rank.label.endsWith('rank1');"
                        "}))")
            browser.driver.save_screenshot(str(HERE / "report.png"))


if __name__ == "__main__":
    main()
