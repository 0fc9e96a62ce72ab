#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The site is made of the documents and the manual pages, asks nothing of the network, and is searched as files.

usage: site.py MSPROBE SOURCE_ROOT MAN_FOLDER|-
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import time

import browser
import harness

FOUND_WITHIN_S = 60
TYPE = """
const field = document.querySelector("input.md-search__input");
field.focus();
field.value = arguments[0];
field.dispatchEvent(new Event("keyup"));
"""
TITLES = "return [...document.querySelectorAll('.md-search-result__item h1')].map(one => one.textContent.trim())"


def make_site(root, man, scratch):
    if man == "-" or shutil.which("mandoc") is None or importlib.util.find_spec("mkdocs") is None:
        raise harness.Skip("no manual pages, mandoc or mkdocs (Debian: mandoc, mkdocs-material)")
    (scratch / "pages").mkdir()
    done = subprocess.run([sys.executable, root / "packaging/site/make.py", scratch / "pages", man, scratch / "site"],
                          capture_output=True, text=True, timeout=300, check=False)
    harness.check_equal("scripts/site", (done.returncode, done.stderr), (0, ""))
    return scratch / "site"


def make_tests(_msprobe, root, man):
    root = pathlib.Path(root).resolve()

    def whole(scratch):
        site = make_site(root, man, scratch)
        pages = {str(page.relative_to(site)) for page in site.rglob("*.html")}
        for page in ("index.html", "docs/getting-started.html", "docs/differences/compare.html", "reference/msprobe-compare.html",
                     "reference/python.html", "reference/c.html"):
            harness.check(page in pages, f"{page} is missing")
        for page in pages:
            fetched = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(?:https?:)?//[^"]+', (site / page).read_text("utf-8"))
            harness.check_equal(f"what {page} fetches", fetched, [])

    def searched(scratch):
        site = make_site(root, man, scratch)
        with browser.Browser() as tab:
            tab.driver.get((site / "index.html").as_uri())
            until = time.monotonic() + FOUND_WITHIN_S
            titles = []
            while not titles and time.monotonic() < until:
                tab.run(TYPE, "merge_result D90")  # the page hears it once its script has run
                time.sleep(1)
                titles = tab.run(TITLES)
            harness.check(titles and titles[0].endswith("merge_result"), f"found: {titles}")

    def dead(scratch):
        site = make_site(root, man, scratch)
        sys.path[:0] = [str(root / "packaging/site")]
        import make

        (site / "docs/more.html").write_text('<a href="none.html"></a><a href="faq.html#none"></a><a href="faq.html"></a>', "utf-8")
        harness.check_equal("dead links", list(make.dead_links(site)),
                            ["docs/more.html: none.html", "docs/more.html: faq.html#none"])

    return [("it is whole and fetches nothing", whole), ("pages that are opened as files are searched", searched),
            ("a dead link is found", dead)]


if __name__ == "__main__":
    harness.main(make_tests)
