#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents use the words of docs/glossary.md, and none that its last column rejects. Neither they nor the program
use phrases that no page explains.

usage: glossary.py MSPROBE SOURCE_ROOT
"""

import importlib.util
import pathlib
import re

import harness

MOST_TERMS = 40
# Users could not make sense of these. The program says in whole sentences what is meant.
ASKED_ABOUT = ("on another way to the same result", "parameters that one side has alone", "takes another parameter")
SOURCES = (".cpp", ".hpp", ".h", ".js", ".py")
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


def texts_of_program(source, tree):
    """File and text of what a user can see of the program in this tree; `source` has the script that lists such texts."""
    spec = importlib.util.spec_from_file_location("list_messages", source / "scripts" / "list_messages.py")
    list_messages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(list_messages)
    for folder in list_messages.FOLDERS:
        for file in sorted((tree / folder).rglob("*")):
            if file.suffix in SOURCES and file.is_file():
                for _, text in list_messages.texts(file, file.read_text(encoding="utf-8")):
                    yield str(file.relative_to(tree)), text


def asked_about(source, tree):
    _, pages, meanings = texts_of(tree)
    pages = [*pages.items(), ("docs/glossary.md", meanings)]
    for name, text in [*((name, prose_of(text)) for name, text in pages), *texts_of_program(source, tree)]:
        yield from (f"{name}: {phrase}" for phrase in ASKED_ABOUT if list(uses(text, phrase)))


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

    def finds_phrases(scratch):
        """In a text that two lines of the program make, and on a page; comments are no texts."""
        for folder in ("docs", "src", "python"):
            (scratch / folder).mkdir()
        (scratch / "README.md").write_text("Parameters that one\nside has alone.\n", encoding="utf-8")
        (scratch / "docs/glossary.md").write_text("| term | meaning | do not say |\n", encoding="utf-8")
        code = '// takes another parameter\nnote("the call takes "\n     "another parameter");\n'
        (scratch / "src/a.cpp").write_text(code, encoding="utf-8")
        (scratch / "python/a.py").write_text("# takes another parameter\ntext = 'on another way to it'\n", encoding="utf-8")
        harness.check_equal("phrases", list(asked_about(root, scratch)),
                            [f"README.md: {ASKED_ABOUT[1]}", f"src/a.cpp: {ASKED_ABOUT[2]}"])

    def no_phrases(_scratch):
        harness.check(len(list(texts_of_program(root, root))) > 1000, "the texts of the program are found")
        harness.check_equal("phrases", list(asked_about(root, root)), [])

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
        ("phrases that no page explains are found", finds_phrases),
        ("neither the program nor a page uses such a phrase", no_phrases),
        ("each term is used", lambda _scratch: harness.check_equal("unused terms", list(unused_terms(root)), [])),
    ]


if __name__ == "__main__":
    harness.main(make_tests)
