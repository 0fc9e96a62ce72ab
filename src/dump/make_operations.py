# SPDX-License-Identifier: Apache-2.0
"""usage: make_operations.py operations.yaml OUTPUT.hpp
Writes the rows of the table as C++."""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python" / "msprobe" / "core"))
import operation_table
from operation_table import RowError

# A row without a nature has that of its kind, or is ordinary.
NATURES = {"attention": "exponential", "decision": "discrete", "norm": "normalising", "random": "random",
           "softmax": "exponential"}
KINDS = ("activation", "arithmetic", "attention", "communication", "convert", "create", "decision", "index", "loss", "move",
         "norm", "optimizer", "pointwise", "product", "question", "random", "recurrent", "reduction", "softmax", "solve")
NO_KIND = "none"  # of rows that C++ does not need
ALL_NATURES = ("ordinary", "random", "discrete", "division", "sum", "total", "mean", "exponential", "periodic", "normalising",
               "scaling", "kinked")
TRAITS = {"commutative": "kCommutative", "in_place_gradient": "kInPlaceGradient", "landmark": "kLandmark",
          "left_out": "kLeftOut", "moves": "kMoves", "overwrites": "kOverwrites", "portable": "kPortable", "size": "kSize",
          "view": "kView"}
PREFIXES = ("Aten", "Distributed", "Functional", "MindSpeed", "NPU", "Tensor", "Torch", "VF")
RISKS = ("core", "low")
PLACE = r"(?:(?:MindSpore|MSAdapter)\.)?(?:Distributed|Functional|MindSpeed|Mint\w*|NPU|Tensor|Torch|VF)"
WORDS = {"recorded": PLACE + r"(\.[\w.]+)?(=[\w.]+)?", "unrecorded": PLACE + r"(\.[\w.*]+)?",
         "masked": PLACE + r"(\.\w+)?\.(input|output)\.\d+(=\w+)?", "listed": r"[\w.]+",
         "mindspore": r"(Functional|Tensor)(\.\w+)?(=\w+)?"}
# Lists of the rules of commands: their keys in files of --rules, and those of calls that are made again.
RULES = ("absolute_threshold", "accumulative_error", "any_order", "binary_consistency", "causal_mask", "drops", "expected_bad",
         "first_output_alone", "ignored_outputs", "labels", "level_1", "level_2", "mindspore_called", "names_destination",
         "names_source", "never_blamed", "never_called", "never_first", "never_judged", "no_integers", "not_raised",
         "not_raised_as_bits", "outputs_only", "quantized", "rounded_to_hf32", "subscript", "thousandth", "ulp", "uninitialized",
         "write_only_inputs")
KEYS = ("kind", "nature", "risk", "recorded", "unrecorded", "masked", "listed", "mindspore", "also", "is", "in", "signature",
        "parameters", "running_statistics") + PREFIXES + ("replay", "rules")

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

inline constexpr KnownOperation::Signature kSignatures[] = {
%(signatures)s};

inline constexpr KnownOperation kOperations[] = {
%(operations)s};

}  // namespace msprobe::dump
"""


def row_name(name):
    """The name of the row of an operation or a function: the head of the table explains it."""
    last = name.split(".")[-1]
    if len(last) > 4 and last.startswith("__") and last.endswith("__"):
        return last.replace("_", "").lower()
    return last.strip("_").lower()


def read(path):
    """{name: row} of the table, in its order."""
    return operation_table.read(path, check)


def names_of(signature):
    """The arguments that may be given by position."""
    names = []
    for word in signature.split():
        if word in ("*", "..."):
            break
        names.append(re.split("[=@]", word)[0])
    return names


def _words(row, key):
    value = row.get(key, [])
    return [value] if isinstance(value, str) else value


def check(name, row):
    def one_of(key, allowed, words):
        for word in words:
            if word not in allowed:
                raise RowError("%s %r is not one of %s" % (key, word, ", ".join(allowed)))

    one_of("key", KEYS, row)
    one_of("kind", (*KINDS, NO_KIND), [row.get("kind", "")])
    one_of("risk", RISKS, _words(row, "risk")[:1])
    for key, form in WORDS.items():
        for word in row.get(key, []):
            if not re.fullmatch(form, word):
                raise RowError("%s: %r cannot be understood" % (key, word))
    one_of("nature", ALL_NATURES, [row["nature"]] if "nature" in row else [])
    one_of("is", TRAITS, row.get("is", []))
    one_of("in", PREFIXES, row.get("in", []))
    one_of("rules", RULES, [re.split("[=/]", word)[0].rstrip("_") for word in row.get("rules", [])])
    for key in ("parameters", "running_statistics"):
        one_of(key, names_of(row.get("signature", "")), row.get(key, []))
    if name != name.lower().strip("_"):
        raise RowError("must be in lower case, without _ at its ends")


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
        if row["kind"] == NO_KIND:
            continue
        first = len(signatures)
        for prefix in ("signature",) + PREFIXES:
            if prefix in row:
                signatures.append("{%s, %s}" % (_text("" if prefix == "signature" else prefix), _text(row[prefix])))
        traits = " | ".join("KnownOperation::" + TRAITS[trait] for trait in row.get("is", [])) or "0"
        nature = row.get("nature") or NATURES.get(row["kind"], "ordinary")
        for called in [name] + row.get("also", []):
            operations.append((called, "{%s}" % ", ".join((
                _text(called), _text(name), "OperationKind::" + row["kind"], "Nature::" + nature, traits,
                "%du" % _positions(row, "parameters"), "%du" % _positions(row, "running_statistics"),
                _text(" ".join(row.get("in", []))), "{kSignatures + %d, %d}" % (first, len(signatures) - first),
                _text(row.get("replay", "")), _text(" ".join(row.get("rules", [])))))))
    operations.sort()
    for (before, _), (after, _) in zip(operations, operations[1:]):
        if before == after:
            raise RowError("%s is in two rows" % before)
    names = "".join(_named(*kind) for kind in (
        ("kKindNames", "OperationKind", {kind: "OperationKind::" + kind for kind in KINDS}),
        ("kNatureNames", "Nature", {nature: "Nature::" + nature for nature in ALL_NATURES}),
        ("kTraitNames", "KnownOperation::Trait", {trait: "KnownOperation::" + name for trait, name in TRAITS.items()}),
        ("kReplayNames", "std::string_view", {name: _text(name) for name in sorted(
            {row["replay"] for row in rows.values() if "replay" in row})})))
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
    except RowError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
