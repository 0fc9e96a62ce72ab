#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metadata of wheel and source distribution, from pyproject.toml; the version is that of meson.build.

usage: metadata.py [--name]     prints PKG-INFO, or what the names of both files begin with
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def version():
    return re.search(r"^  version: '(.*)',$", (ROOT / "meson.build").read_text("utf-8"), re.MULTILINE)[1]


def text():
    facts = project()
    fields = [
        ("Metadata-Version", "2.1"),
        ("Name", facts["name"]),
        ("Version", version()),
        ("Summary", facts["description"]),
        ("Keywords", ",".join(facts["keywords"])),
        *(("Author", one["name"]) for one in facts["authors"]),
        ("License", facts["license"]["text"]),
        *(("Classifier", one) for one in facts["classifiers"]),
        *(("Project-URL", f"{name}, {url}") for name, url in facts.get("urls", {}).items()),
        ("Requires-Python", facts["requires-python"]),
        *(("Requires-Dist", one) for one in facts["dependencies"]),
    ]
    for extra, needed in facts["optional-dependencies"].items():
        fields.append(("Provides-Extra", extra))
        fields += [("Requires-Dist", f'{one} ; extra == "{extra}"') for one in needed]
    fields.append(("Description-Content-Type", "text/markdown"))
    return "".join(f"{name}: {value}\n" for name, value in fields) + "\n" + (ROOT / facts["readme"]).read_text("utf-8")


def entry_points():
    """The content of entry_points.txt of the wheel."""
    groups = project().get("entry-points", {}).items()
    return "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
                     for group, points in groups)


def file_name():
    return f"{project()['name'].replace('-', '_')}-{version()}"


if __name__ == "__main__":
    print(file_name() + "\n" if sys.argv[1:] == ["--name"] else text(), end="")
