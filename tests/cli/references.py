#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that comments and documents refer to exists: documents, headings, links, items of docs/differences.md, files;
docs/architecture.md says of folders and files what they are; and no two classes of src have the same name.

usage: references.py MSPROBE SOURCE_ROOT
"""

import pathlib
import re

import harness

FOLDERS = (".ci", "benchmarks", "data", "docs", "include", "man", "packaging", "python", "scripts", "skills", "src", "tests")
SUFFIXES = {"", ".build", ".c", ".cases", ".cpp", ".h", ".hpp", ".in", ".json", ".md", ".py", ".roff", ".sh", ".yaml"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# A comment goes on in the next line.
LINE_END = re.compile(r"\s*\n\s*(?://+|#+|\*)?\s*")
CITED = re.compile(r"\bdocs/([\w/-]+\.md)((?:,? \"[^\"]+\")*)")
LINK = re.compile(r"\]\(([^()\s]+)\)")
PATH = re.compile(r"`((?:%s)/[\w./-]+)`" % "|".join(map(re.escape, FOLDERS)))
ITEM = re.compile(r"(?<![\w.-])([DGMNPTW][0-9]{1,3})(?![\w-])")
# The definition of a class or an enumeration, not a specialization.
CLASS = re.compile(r"^[ \t]*(?:template ?<[^;{]*> *)?(?:struct|class|enum class|enum|union) (?:\[\[\w+\]\] )?(\w+)(?: final)?"
                   r"(?: :[^;{}]*)?\s*\{", re.MULTILINE)


def texts(root):
    """(path, text) of what people wrote; test data are not among them, but for their README.md, nor are the wrong references
    below."""
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*"))]
    for file in [*sorted(root.glob("*.md")), *files]:
        path = file.relative_to(root)
        data = (path.parts[:2] == ("tests", "data") and path.name != "README.md") or path.name == "references.py"
        if path.suffix in SUFFIXES and file.is_file() and not data and not {"__pycache__", "samples"} & set(path.parts):
            yield path, file.read_text(encoding="utf-8", errors="replace")


def headings(document):
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    return re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)


def anchors(document):
    """As GitHub makes them of headings."""
    found = set()
    for heading in headings(document):
        slug = re.sub(r"[^\w\- ]", "", re.sub(r"\[(.+?)\]\(.+?\)", r"\1", heading).lower()).replace(" ", "-")
        count = 0
        while (name := f"{slug}-{count}" if count else slug) in found:
            count += 1
        found.add(name)
    return found


def cited_in(text, docs):
    for name, quoted in CITED.findall(LINE_END.sub(" ", text)):
        if not (docs / name).is_file():
            yield f"docs/{name}"
            continue
        known = headings(docs / name)
        yield from (f'docs/{name}, "{one}"' for one in re.findall(r'"([^"]+)"', quoted) if one not in known)


def links_in(path, text, root):
    for target in LINK.findall(FENCE.sub("", text)):
        place, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        document = (root / path).parent / place if place else root / path
        if not document.exists() or (anchor and document.suffix == ".md" and anchor not in anchors(document)):
            yield f"link to {target}"


def items_in(path, text, known):
    """Numbers of docs/differences.md, in documents and behind the name of that one elsewhere."""
    if path.suffix != ".md":
        text = " ".join(re.findall(r"docs/differences\.md[^.;]*", LINE_END.sub(" ", text)))
    elif path.name == "README.md" and path.parts[0] == "tests":
        return
    # In code and tables of numbers such letters mean something else.
    for item in ITEM.findall(re.sub(r"`[^`]*`", "", FENCE.sub("", text))):
        if item[0] in known and item not in known:
            yield f"item {item}"


def items_of(root):
    """Their numbers, on the pages behind docs/differences.md."""
    pages = [root / "docs/differences.md", *sorted((root / "docs/differences").glob("*.md"))]
    return [item for page in pages for item in harness.items_of(page)]


def repeated_items(root):
    items = items_of(root)
    return sorted({item for item in items if items.count(item) > 1})


def wrong_references(root):
    docs = root / "docs"
    known = set(items_of(root))
    known |= {item[0] for item in known}
    for path, text in texts(root):
        wrong = [*cited_in(text, docs), *items_in(path, text, known)]
        if path.suffix == ".md":
            wrong += links_in(path, text, root)
            wrong += [name for name in PATH.findall(FENCE.sub("", text)) if not (root / name).exists()]
        yield from (f"{path}: {one}" for one in wrong)


def unlisted_uses(root):
    """Includes across folders of src that the folder map does not allow."""
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `src/(\w+)/` \|.*\| (.+?) \|$", page, re.MULTILINE)
    allowed = {folder: set(re.findall(r"\w+", uses)) for folder, uses in rows}
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        for path in sorted(folder.rglob("*.?pp")):
            used = set(re.findall(r'^#include "(\w+)/', path.read_text(encoding="utf-8"), re.MULTILINE))
            for other in sorted(used - {folder.name, "msprobe"} - allowed.get(folder.name, set())):
                yield f"{path.relative_to(root)} includes {other}/, which the map does not list for {folder.name}/"


def shared_names(root):
    """Classes and enumerations of src, nested ones included, that have the name of another one."""
    files = {}
    for path in sorted((root / "src").rglob("*.?pp")):
        for name in CLASS.findall(re.sub("//.*", "", path.read_text(encoding="utf-8"))):
            files.setdefault(name, []).append(str(path.relative_to(root)))
    return [f"{name}: {', '.join(places)}" for name, places in sorted(files.items()) if len(places) > 1]


def opened_namespaces(root):
    """Headers of src that show all names of a namespace of ours in another one."""
    for path in sorted((root / "src").rglob("*.hpp")):
        for name in re.findall(r"^\s*using namespace ([\w:]+);", path.read_text(encoding="utf-8"), re.MULTILINE):
            if not name.startswith("std::"):
                yield f"{path.relative_to(root)}: {name}"


def names_of_nothing(root):
    """Names beside files in a row of docs/architecture.md that none of these files contains."""
    for row in re.findall(r"^\| [^`].+ \|$", (root / "docs/architecture.md").read_text(encoding="utf-8"), re.MULTILINE):
        code = re.findall(r"`([^`]+)`", row)
        files = [root / name for name in code if re.fullmatch(r"(?:src|python|include)/\S+\.\w+", name)]
        beside = "".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
        for name in code if files else ():
            word = name.split("::")[-1]
            if re.fullmatch(r"\w+", word) and word not in beside:
                yield f"{name}, in the row of {files[0].relative_to(root)}"


def finds_what_is_wrong(scratch):
    """A tree with one wrong reference of each kind."""
    files = {
        "README.md": "[a](src/none.md) [b](docs/differences.md#no) [c](docs/differences.md#items) `src/x/no.hpp` D1, D2\n",
        "docs/differences.md": "# Items\n\n| # | what |\n|---|---|\n| D1 | one |\n",
        "docs/architecture.md": "| a step | `src/x/a.hpp` (`Known`) | `Unknown` |\n| `src/x/` | one | y, z |\n",
        "src/x/a.hpp": '// docs/differences.md, "Items"; docs/differences.md,\n// "Others"; docs/gone.md.\nint Known;\n'
                       "struct Side final : Base<int> {};\nstruct Once {};\n",
        "src/y/b.hpp": '#include "x/a.hpp"\nnamespace y {\nusing namespace x;\nusing namespace std::chrono;\n}\n'
                       "struct Key {\n  enum class Side : std::uint8_t { target };\n};\nstruct Once;\ntemplate <>\n"
                       "struct Once<int> {};\n",
    }
    for name, text in files.items():
        (scratch / name).parent.mkdir(parents=True, exist_ok=True)
        (scratch / name).write_text(text, encoding="utf-8")
    expected = ["README.md: item D2", "README.md: link to src/none.md", "README.md: link to docs/differences.md#no",
                "README.md: src/x/no.hpp", 'src/x/a.hpp: docs/differences.md, "Others"', "src/x/a.hpp: docs/gone.md"]
    harness.check_equal("wrong references", list(wrong_references(scratch)), expected)
    unlisted = ["src/y/b.hpp includes x/, which the map does not list for y/"]
    harness.check_equal("unlisted uses", list(unlisted_uses(scratch)), unlisted)
    harness.check_equal("shared names", shared_names(scratch), ["Side: src/x/a.hpp, src/y/b.hpp"])
    harness.check_equal("opened namespaces", list(opened_namespaces(scratch)), ["src/y/b.hpp: x"])
    harness.check_equal("names of nothing", list(names_of_nothing(scratch)), ["Unknown, in the row of src/x/a.hpp"])


def make_tests(_msprobe, root):
    root = pathlib.Path(root).resolve()

    def nothing(found):
        return lambda _scratch: harness.check_equal("what leads nowhere", list(found(root)), [])

    return [
        ("what is wrong is found", finds_what_is_wrong),
        ("what comments and documents refer to is there", nothing(wrong_references)),
        ("no two items of docs/differences.md have the same number", nothing(repeated_items)),
        ("folders of src use what the map lists", nothing(unlisted_uses)),
        ("no two classes of src have the same name", nothing(shared_names)),
        ("a header of src opens no other namespace", nothing(opened_namespaces)),
        ("docs/architecture.md names what is there", nothing(names_of_nothing)),
    ]


if __name__ == "__main__":
    harness.main(make_tests)
