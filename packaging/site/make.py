#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site; scripts/site calls it.

usage: make.py PAGES MAN SITE
  PAGES   an empty folder for the sources of the site
  MAN     the manual pages of the build, of which the reference is made
  SITE    the result
"""

import html.parser
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import documents  # noqa: E402
import interfaces  # noqa: E402

SEE = re.compile(r"<b>(msprobe[\w-]*)</b>\(1\)")
WORKER = "assets/javascripts/workers/search.*.min.js"


def add_reference(man, folder):
    """A page for each manual page; (title, file) of each."""
    folder.mkdir(parents=True)
    found = []
    there = {page.stem for page in man.glob("msprobe*.1")}
    for page in sorted(man.glob("msprobe*.1")):
        text = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", page], capture_output=True, text=True, check=True).stdout
        text = re.sub(r'<table class="(?:head|foot)">.*?</table>\n?', "", text, flags=re.DOTALL)
        # One title on a page; what Markdown would take for its own is inside of HTML and stays.
        text = re.sub(r"<(/?)h([12])\b", lambda tag: f"<{tag[1]}h{int(tag[2]) + 1}", text)
        text = SEE.sub(lambda see: f'<a href="{see[1]}.html">{see[0]}</a>' if see[1] in there else see[0], text)
        text = re.sub(r"\n\s*\n", "\n", text)
        (folder / f"{page.stem}.md").write_text(f"# {page.stem}\n\n{text}\n", "utf-8")
        found.append((page.stem, f"reference/{page.stem}.md"))
    return found


def add_interfaces(folder):
    """The pages on the Python package and the C interface; (title, file) of each."""
    found = []
    for title, name, text in interfaces.pages(documents.ROOT):
        (folder / name).write_text(text, "utf-8")
        found.append((title, f"reference/{name}"))
    return found


def section_of(title, listed):
    return f"  - {title}:\n" + "".join(f"      - {title}: {file}\n" for title, file in listed)


def configuration(pages, reference, calls):
    text = (HERE / "mkdocs.yml").read_text("utf-8")
    generated = section_of("Commands and options", reference) + section_of("Interfaces", calls)
    text = text.replace("  - From the Python tool:\n", f"{generated}  - From the Python tool:\n")
    for page in sorted((pages / "docs/differences").glob("*.md")):
        text += f"      - {page.stem}: docs/differences/{page.name}\n"
    text = text.replace("  name: material\n", f"  name: material\n  custom_dir: {HERE / 'theme'}\n")
    file = pages.parent / f"{pages.name}.yml"
    file.write_text(f"{text}docs_dir: {pages}\n", "utf-8")
    return file


def add_search(site):
    """The index and the program that searches as one script, because a page that is opened as a file cannot fetch them."""
    worker, = site.glob(WORKER)
    index = json.loads((site / "search/search_index.json").read_text("utf-8"))
    index = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    program = json.dumps(worker.read_text("utf-8"))
    (site / "assets/search.js").write_text(
        f"var __search = {{\n  index: Promise.resolve({index}),\n"
        f"  worker: URL.createObjectURL(new Blob([{program}], {{type: 'text/javascript'}}))\n}};\n", "utf-8")


class Anchors(html.parser.HTMLParser):
    """Of one page: what can be linked to, and the links to pages of the site."""

    def __init__(self, page):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids |= {values[name] for name in ("id", "name") if values.get(name)}
        target = values.get("href" if tag in ("a", "link") else "src") or ""
        if target and not re.match(r"[a-z]+:|//", target):
            self.links.append(target)


def dead_links(site):
    pages = {page: Anchors(page) for page in sorted(site.rglob("*.html")) if page.name != "404.html"}
    for page, found in pages.items():
        for target in found.links:
            place, _, anchor = urllib.parse.unquote(target).partition("#")
            file = (page.parent / place).resolve() if place else page
            if not file.exists():
                yield f"{page.relative_to(site)}: {target}"
            elif anchor and file in pages and anchor not in pages[file].ids:
                yield f"{page.relative_to(site)}: {target}"


def unlisted(pages, file):
    """Pages that nobody finds, because they are not in the navigation."""
    listed = set(re.findall(r": (\S+\.md)$", file.read_text("utf-8"), re.MULTILINE))
    return sorted(str(page.relative_to(pages)) for page in pages.rglob("*.md") if str(page.relative_to(pages)) not in listed)


def main(pages, man, site):
    pages, man, site = (pathlib.Path(one).resolve() for one in (pages, man, site))
    documents.copy(pages)
    file = configuration(pages, add_reference(man, pages / "reference"), add_interfaces(pages / "reference"))
    try:
        missing = unlisted(pages, file)
        if missing:
            sys.exit(f"not in packaging/site/mkdocs.yml: {', '.join(missing)}")
        subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", file,
                        "--site-dir", site], check=True,
                       env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE), "LC_ALL": "C.UTF-8"})
    finally:
        file.unlink()
    add_search(site)
    dead = sorted(set(dead_links(site)))
    if dead:
        sys.exit("links to nothing:\n" + "\n".join(dead))


if __name__ == "__main__":
    main(*sys.argv[1:])
