#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents use the words of docs/glossary.md, and none that its last column rejects.

usage: glossary.py MSPROBE SOURCE_ROOT
"""

import pathlib
import re

import harness

MOST_TERMS = 40
TITLES = ("term", "meaning", "do not say")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK_TARGET = re.compile(r"\]\([^()\s]*\)")


def rows_of(glossary):
    """(term, meaning, rejected words) of the table."""
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in glossary.splitlines() if line.startswith("| ")]
    harness.check_equal("columns of docs/glossary.md", rows[0], TITLES)
    return rows[1:]


def words_of(cell):
    return [word.strip() for word in cell.split(",") if word.strip()]


def prose_of(text):
    """Without code and without the targets of links, which may have names of others."""
    return LINK_TARGET.sub("]", CODE.sub("`", text))


def uses(prose, word):
    """The places of the word, also across lines."""
    return re.finditer(r"(?<![\w-])" + r"\s+".join(map(re.escape, word.split())) + r"(?![\w-])", prose, re.IGNORECASE)


def texts_of(root):
    """The README and the pages by name; of the glossary, what it says besides the words that it rejects."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    texts = {str(page.relative_to(root)): page.read_text(encoding="utf-8") for page in pages}
    rows = rows_of(texts.pop("docs/glossary.md"))
    return rows, texts, "\n".join(meaning for _, meaning, _ in rows)


def rejected_words(root):
    rows, texts, meanings = texts_of(root)
    for term, _, rejected in rows:
        for word in words_of(rejected):
            for name, text in {**texts, "docs/glossary.md": meanings}.items():
                if list(uses(prose_of(text), word)):
                    yield f"{name}: '{word}', which is '{term}' here"


def unused_terms(root):
    rows, texts, _ = texts_of(root)
    for term, _, _ in rows:
        for word in words_of(term):
            if not any(list(uses(text, word)) for text in texts.values()):
                yield word


def finds_what_is_wrong(scratch):
    """A page that uses a rejected word across two lines, in code and in a link; a term that no page uses."""
    (scratch / "docs").mkdir()
    table = "# Glossary\n\n| term | meaning | do not say |\n|---|---|---|\n| golden | the right run | good side, base |\n| rank | one | |\n"
    (scratch / "docs/glossary.md").write_text(table, encoding="utf-8")
    (scratch / "docs/faq.md").write_text("Golden, `base`, [one](base).\n\n```\nbase\n```\n", encoding="utf-8")
    (scratch / "README.md").write_text("The Good\nside, bases.\n", encoding="utf-8")
    harness.check_equal("rejected words", list(rejected_words(scratch)), ["README.md: 'good side', which is 'golden' here"])
    harness.check_equal("unused terms", list(unused_terms(scratch)), ["rank"])


def make_tests(_msprobe, root):
    root = pathlib.Path(root).resolve()

    def few(_scratch):
        terms = [term for term, _, _ in rows_of((root / "docs/glossary.md").read_text(encoding="utf-8"))]
        harness.check(len(terms) <= MOST_TERMS, f"{len(terms)} terms, {MOST_TERMS} are enough")
        harness.check_equal("order", terms, sorted(terms))
        harness.check_equal("terms that occur twice", len(terms), len(set(terms)))

    return [
        ("what is wrong is found", finds_what_is_wrong),
        ("the glossary is short and sorted", few),
        ("no page uses a word that the glossary rejects",
         lambda _scratch: harness.check_equal("rejected words", list(rejected_words(root)), [])),
        ("each term is used", lambda _scratch: harness.check_equal("unused terms", list(unused_terms(root)), [])),
    ]


if __name__ == "__main__":
    harness.main(make_tests)
