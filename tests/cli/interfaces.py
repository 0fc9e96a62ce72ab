#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that programs may call is explained where it is declared: its arguments, and what it raises or returns on errors.

The pages of the site on the Python package and the C interface are made of these texts.

usage: interfaces.py MSPROBE SOURCE_ROOT
"""

import ast
import pathlib
import re
import sys

import harness


def unexplained_in_python(interfaces, root):
    """Yields a line for each missing text."""
    package = interfaces.Package(root)
    for module, definition in interfaces.public(root):
        name = f"{module}.{definition.name}"
        text = package.docstring(definition)
        if isinstance(definition.node, ast.ClassDef):
            if not text:
                yield f"{name}: no docstring"
            calls = [(f"{name}.{member}", node, own, f"{own} {text}") for member, node, own in package.members(definition)]
            if "Args:" in text:
                calls.append((name, package.constructor(definition), text, text))
        else:
            calls = [(name, definition.node, text, text)]
        for call, node, own, with_class in calls:
            if not own:
                yield f"{call}: no docstring"
                continue
            if any(ast.unparse(one) == "property" for one in node.decorator_list):
                continue
            for argument in interfaces.arguments_of(node):
                if not re.search(rf"\b{argument}\b", own):
                    yield f"{call}: nothing on the argument {argument}"
            if not re.search(r"\b[Rr]aises?\b", with_class):
                yield f"{call}: nothing on errors: `Raises X if ...`, or that it raises nothing"


def unexplained_in_c(interfaces, root):
    for header in interfaces.HEADERS:
        for comment, code in interfaces.chunks((root / "include/msprobe" / header).read_text("utf-8")):
            if not comment and interfaces.functions_in(code):
                yield f"{header}: no comment on {', '.join(interfaces.functions_in(code))}"


def finds_what_is_missing(interfaces, scratch):
    package = scratch / "python/msprobe"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""One."""\nfrom .parts import *\nfrom .parts import Tool, silent, told\n'
                                         '__all__ = ["Tool", "silent", "told"]\n', "utf-8")
    (package / "parts.py").write_text(
        'class Base:\n    def stop(self, now):\n        """Stops. Raises nothing."""\n\n'
        'class Tool(Base):\n    """A tool."""\n    def stop(self, now):\n        pass\n\n'
        'def silent():\n    pass\n\n'
        'def told(a):\n    """Takes a. Raises ValueError if it is 0."""\n', "utf-8")
    (scratch / "include/msprobe").mkdir(parents=True)
    (scratch / "include/msprobe/collector.h").write_text(
        "/* License */\n/* Why. */\nint msprobe_why(int one,\n        int two);\nint msprobe_like_it(int one);\n\nint msprobe_bare(void);\n", "utf-8")
    was = interfaces.PUBLIC, interfaces.HEADERS
    interfaces.PUBLIC, interfaces.HEADERS = {"msprobe": None}, ("collector.h",)
    try:
        harness.check_equal("Python", list(unexplained_in_python(interfaces, scratch)),
                            ["msprobe.Tool.stop: nothing on the argument now", "msprobe.silent: no docstring"])
        harness.check_equal("C", list(unexplained_in_c(interfaces, scratch)), ["collector.h: no comment on msprobe_bare"])
    finally:
        interfaces.PUBLIC, interfaces.HEADERS = was


def make_tests(_msprobe, root):
    root = pathlib.Path(root).resolve()
    sys.path[:0] = [str(root / "packaging/site")]
    import interfaces

    return [
        ("what is missing is found", lambda scratch: finds_what_is_missing(interfaces, scratch)),
        ("every public name of the Python package is explained",
         lambda _: harness.check_equal("missing", list(unexplained_in_python(interfaces, root)), [])),
        ("every function of the C interface is explained",
         lambda _: harness.check_equal("missing", list(unexplained_in_c(interfaces, root)), [])),
    ]


if __name__ == "__main__":
    harness.main(make_tests)
