# SPDX-License-Identifier: Apache-2.0
"""usage: make_operations.py operations.yaml OUTPUT.hpp
Writes the rows of the table as C++. Reads the part of YAML that the table is written in, so that the build needs no
library: one map a row, `name: {key: value, ...}`, over as many lines as it takes; a value is a word, a list of words or
a text in double quotes."""

import re
import sys

# A row without a nature has that of its kind, or is ordinary.
NATURES = {"attention": "exponential", "decision": "discrete", "norm": "normalising", "random": "random",
           "softmax": "exponential"}
KINDS = ("activation", "arithmetic", "attention", "communication", "convert", "create", "decision", "index", "loss", "move",
         "norm", "optimizer", "pointwise", "product", "question", "random", "recurrent", "reduction", "softmax", "solve")
ALL_NATURES = ("ordinary", "random", "discrete", "division", "sum", "total", "mean", "exponential", "normalising", "scaling",
               "kinked")
TRAITS = {"commutative": "kCommutative", "in_place_gradient": "kInPlaceGradient", "landmark": "kLandmark",
          "left_out": "kLeftOut", "moves": "kMoves", "overwrites": "kOverwrites", "size": "kSize", "view": "kView"}
PREFIXES = ("Aten", "Distributed", "Functional", "MindSpeed", "NPU", "Tensor", "Torch", "VF")
KEYS = ("kind", "nature", "also", "is", "in", "signature", "parameters", "running_statistics") + PREFIXES

HEADER = """// Made of data/operations.yaml by make_operations.py.
#pragma once

#include "dump/operations.hpp"

namespace msprobe::dump {

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

%(names)sinline Nature implied_nature(OperationKind kind) {
  switch (kind) {
%(implied)s    default:
      return Nature::ordinary;
  }
}

inline constexpr Operation::Signature kSignatures[] = {
%(signatures)s};

inline constexpr Operation kOperations[] = {
%(operations)s};

}  // namespace msprobe::dump
"""

_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([{}\[\]:,])|([^\s"{}\[\]:,]+))')


class TableError(Exception):
    pass


def _tokens(text):
    """(is it a sign, text), to the end."""
    at = 0
    text = text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise TableError("cannot be read at " + text[at:at + 20])
        at = found.end()
        yield (True, found[2]) if found[2] else (False, found[1] if found[3] is None else found[3])


def _row(text):
    """(name, {key: word or list}) of `name: {...}`."""
    tokens = list(_tokens(text)) + [(True, "end")]

    def take(*signs):
        is_sign, token = tokens.pop(0)
        if (is_sign and token not in signs) or (not is_sign and signs):
            raise TableError("%r where %s should be" % (token, " or ".join(signs) or "a word"))
        return token

    name = take()
    take(":")
    take("{")
    row = {}
    while True:
        key = take()
        if key in row:
            raise TableError("%s stands twice" % key)
        take(":")
        if tokens[0] == (True, "["):
            take("[")
            row[key] = [take()]
            while take(",", "]") == ",":
                row[key].append(take())
        else:
            row[key] = take()
        if take(",", "}") == "}":
            take("end")
            return name, row


def read(path):
    """{name: row} of a table, in its order."""
    rows = {}
    texts = []  # [first line, text]
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = re.sub(r"(^|\s)#.*", "", line.rstrip("\n"))
            if line[:1] in ("", " "):
                if line.strip():
                    texts[-1][1] += " " + line.strip()
            else:
                texts.append([number, line])
    for number, text in texts:
        try:
            name, row = _row(text)
            check(name, row)
            if name in rows:
                raise TableError("stands twice")
        except TableError as error:
            raise TableError("%s:%d: %s: %s" % (path, number, text.split(":")[0], error)) from None
        rows[name] = row
    return rows


def names_of(signature):
    """The arguments that may be given by position."""
    names = []
    for word in signature.split():
        if word in ("*", "..."):
            break
        names.append(re.split("[=@]", word)[0])
    return names


def check(name, row):
    def one_of(key, allowed, words):
        for word in words:
            if word not in allowed:
                raise TableError("%s %r is none of %s" % (key, word, ", ".join(allowed)))

    one_of("key", KEYS, row)
    one_of("kind", KINDS, [row.get("kind", "none")])
    one_of("nature", ALL_NATURES, [row["nature"]] if "nature" in row else [])
    one_of("is", TRAITS, row.get("is", []))
    one_of("in", PREFIXES, row.get("in", []))
    for key in ("parameters", "running_statistics"):
        one_of(key, names_of(row.get("signature", "")), row.get(key, []))
    if name != name.lower().strip("_"):
        raise TableError("must be in lower case, without _ at its ends")


def _text(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def _positions(row, key):
    names = names_of(row.get("signature", ""))
    return sum(1 << names.index(name) for name in row.get(key, []))


def _named(name, of, values):
    return "inline constexpr Named<%s> %s[] = {\n%s};\n\n" % (
        of, name, "".join('    {"%s", %s},\n' % value for value in values.items()))


def write(rows, file):
    signatures = []
    operations = []
    for name, row in rows.items():
        first = len(signatures)
        for prefix in ("signature",) + PREFIXES:
            if prefix in row:
                signatures.append("{%s, %s}" % (_text("" if prefix == "signature" else prefix), _text(row[prefix])))
        traits = " | ".join("Operation::" + TRAITS[trait] for trait in row.get("is", [])) or "0"
        for called in [name] + row.get("also", []):
            nature = row.get("nature") or NATURES.get(row["kind"], "ordinary")
            operations.append((called, "{%s, %s, OperationKind::%s, Nature::%s, %s, %du, %du, %s, {kSignatures + %d, %d}}" % (
                _text(called), _text(name), row["kind"], nature, traits, _positions(row, "parameters"),
                _positions(row, "running_statistics"), _text(" ".join(row.get("in", []))), first, len(signatures) - first)))
    operations.sort()
    for (before, _), (after, _) in zip(operations, operations[1:]):
        if before == after:
            raise TableError("%s is in two rows" % before)
    names = "".join(_named(*kind) for kind in (
        ("kKindNames", "OperationKind", {kind: "OperationKind::" + kind for kind in KINDS}),
        ("kNatureNames", "Nature", {nature: "Nature::" + nature for nature in ALL_NATURES}),
        ("kTraitNames", "Operation::Trait", {trait: "Operation::" + name for trait, name in TRAITS.items()})))
    implied = "".join("    case OperationKind::%s:\n      return Nature::%s;\n" % pair for pair in NATURES.items())
    file.write(HEADER % {
        "names": names, "implied": implied,
        "signatures": "".join("    %s,\n" % line for line in signatures),
        "operations": "".join("    %s,\n" % line for _, line in operations)})


def main():
    table, output = sys.argv[1:]
    try:
        rows = read(table)
        with open(output, "w", encoding="utf-8") as file:
            write(rows, file)
    except TableError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
