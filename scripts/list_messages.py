#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the texts that a user can see: string literals of at least two words in C++, Python and JavaScript.

usage: scripts/list_messages.py [PATH...]
  PATH   files, or folders of which the tracked files are read (default: src include python data)

Prints FILE:LINE: TEXT. Literals that are added up are one text, in which {} replaces a value. scripts/check-prose checks these
texts, too.
"""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "python", "data")
WORDS = re.compile(r"[A-Za-z]{2,}\W*\s\W*[A-Za-z]{2,}")

LITERALS = r""""(?P<text>(?:[^"\\\n]|\\.)*)"|(?<!\w)'(?P<single>(?:[^'\\\n]|\\.)*)'"""
COMMENTS = r"//[^\n]*|/\*.*?\*/"
CPP = re.compile(rf'{COMMENTS}|R"(?P<mark>[^(\s"]*)\((?P<raw>.*?)\)(?P=mark)"|{LITERALS}', re.DOTALL)
JAVASCRIPT = re.compile(rf"{COMMENTS}|`(?P<raw>(?:[^`\\]|\\.)*)`|{LITERALS}", re.DOTALL)
SHELL = re.compile(rf"(?<!\S)#[^\n]*|{LITERALS}")
PATTERNS = {".cpp": CPP, ".hpp": CPP, ".h": CPP, ".js": JAVASCRIPT, ".sh": SHELL, ".build": SHELL, "": SHELL}
VALUE_BETWEEN = re.compile(r"\s*\+[^;\"]*\+\s*|\s*")  # of two literals of one text
ESCAPES = {"\\n": "\n", "\\t": " ", '\\"': '"', "\\'": "'", "\\\\": "\\"}


def joined(pattern, code):
    """(place, text) of the literals of a language without a parser in Python's library"""
    text, start, end = "", 0, 0
    for found in pattern.finditer(code):
        part = found["raw"] if "raw" in pattern.groupindex and found["raw"] is not None else found["text"]
        if part is None and pattern is not CPP:
            part = found["single"]
        if part is None:
            continue
        if pattern is JAVASCRIPT:
            part = re.sub(r"\$\{[^{}]*\}", "{}", part)
        part = re.sub(r"\\.", lambda escape: ESCAPES.get(escape[0], escape[0]), part)
        between = code[end:found.start()]
        if text and pattern is not SHELL and VALUE_BETWEEN.fullmatch(between):
            text += ("{}" if between.strip() else "") + part
        else:
            yield start, text
            text, start = ("{}" if re.search(r"\+\s*$", between) else "") + part, found.start()
        end = found.end()
    yield start, text


def value(node):
    """The text of an expression in Python, with {} for each value; None for any other expression."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(value(each) or "{}" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = value(node.left), value(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def of_python(code):
    """(line, text) of the strings outside of docstrings"""
    def visit(node):
        text = value(node)
        if text is not None:
            yield node.lineno, text
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            for child in ast.iter_child_nodes(node):
                yield from visit(child)
    return visit(ast.parse(code))


def texts(path, code):
    """(line, text) of each text of at least two words"""
    if path.suffix in (".py", ".pyi") or re.match(r"#!.*python", code):
        found = of_python(code)
    else:
        found = ((code.count("\n", 0, place) + 1, text) for place, text in joined(PATTERNS[path.suffix], code))
    return ((line, text) for line, text in found if WORDS.search(text))


def tracked(path):
    done = subprocess.run(["git", "ls-files", "-z", "--", path], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.split("\0") if name]


def main():
    for path in sys.argv[1:] or FOLDERS:
        for file in tracked(pathlib.Path(path).resolve() if sys.argv[1:] else path):
            if file.suffix in (".cpp", ".hpp", ".h", ".js", ".py"):
                for line, text in texts(file, file.read_text("utf-8")):
                    print(f"{file.relative_to(ROOT)}:{line}: " + " ".join(text.split()))


if __name__ == "__main__":
    main()
