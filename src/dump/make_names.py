# SPDX-License-Identifier: Apache-2.0
"""usage: make_names.py operations.yaml FRAMEWORK OUTPUT
Writes names of operations from the table: for `pytorch`, `mindspore` or `mindtorch` the JSON from which its front end knows
which functions to record (python/msprobe/core/wrapping.py), for `native` a C++ header."""

import json
import sys

import make_operations
from operation_table import RowError

# Groups of the front ends, by the places that rows name.
GROUPS = {
    "pytorch": {"Functional": "functional", "Tensor": "tensor", "Torch": "torch", "VF": "vf", "Distributed": "distributed",
                "NPU": "npu", "MindSpeed": "mindspeed"},
    "mindspore": {"MindSpore.Functional": "ops", "MindSpore.Tensor": "tensor", "Mint": "mint",
                  "MintFunctional": "mint_functional", "MindSpore.Distributed": "distributed",
                  "MintDistributed": "mint_distributed"},
    "mindtorch": {"MSAdapter.Functional": "functional", "MSAdapter.Tensor": "tensor", "MSAdapter.Torch": "torch"},
}
PLACES = [place for groups in GROUPS.values() for place in groups]

HEADER = """// Made of data/operations.yaml by make_names.py.
#pragma once

#include <string_view>
#include <utility>

namespace msprobe::dump {

/// Operations in which a deviation is most likely to matter, and least likely, as they are called.
inline constexpr std::string_view kCoreNames[] = {%s};
inline constexpr std::string_view kLowNames[] = {%s};

/// Names that white and black lists may hold.
inline constexpr std::string_view kListableNames[] = {%s};

/// Entries of MindSpore, and what they are called in PyTorch.
inline constexpr std::pair<std::string_view, std::string_view> kMindSporeNames[] = {%s};

}  // namespace msprobe::dump
"""


def _split(word, own_name):
    """(place, name, other name) of `Place`, `Place.name` or `Place.name=other name`."""
    word, _, other = word.partition("=")
    place = max((place for place in PLACES if (word + ".").startswith(place + ".")), key=len)
    return place, word[len(place) + 1:] or own_name, other


def for_front_end(rows, groups):
    found = {}

    def group(place):
        return found.setdefault(groups[place], {})

    for own_name, row in rows.items():
        for word in row.get("recorded", []):
            place, name, other = _split(word, own_name)
            if place in groups:
                group(place).setdefault("add", []).append(name)
                if other:
                    group(place).setdefault("recorded_as", {})[name] = other
        for word in row.get("unrecorded", []):
            place, name, _ = _split(word, own_name)
            if place in groups:
                group(place).setdefault("leave_out", []).append(name)
        for word in row.get("masked", []):
            word, _, keyword = word.partition("=")
            word, side, position = word.rsplit(".", 2)
            place, name, _ = _split(word, own_name)
            if place in groups:
                masked = found.setdefault("masked", {}).setdefault("%s.%s" % (place, name), {})
                masked.setdefault(side, []).append(int(position))
                if keyword:
                    masked["keyword"] = keyword
    return found


def with_risk(rows, level):
    names = set()
    for own_name, row in rows.items():
        risk = row.get("risk")
        if risk == level:
            names.add(own_name)
        elif risk is not None and risk[0] == level:
            names.update(risk[1:])
    return names


def listable(rows):
    shown = {"Functional", "NPU", "Tensor", "Torch"}
    return {name for own_name, row in rows.items()
            for name in row.get("listed", [own_name] if shown & set(row.get("in", [])) else [])}


def in_pytorch(rows):
    """[(entry of MindSpore, what PyTorch calls it)]"""
    pairs = []
    for own_name, row in rows.items():
        for word in row.get("mindspore", []):
            word, _, other = word.partition("=")
            place, _, name = word.partition(".")
            there = "Torch" if place == "Functional" and "Functional" not in row.get("in", []) else place
            pairs.append(("%s.%s" % (place, name or own_name), "%s.%s" % (there, other or own_name)))
    if len(dict(pairs)) < len(pairs):
        raise RowError("mindspore: a name is in two rows")
    return sorted(pairs)


def native(rows):
    def text(names):
        return "".join('\n    "%s",' % name for name in sorted(names)) + "\n"

    return HEADER % (text(with_risk(rows, "core")), text(with_risk(rows, "low")), text(listable(rows)),
                     "".join('\n    {"%s", "%s"},' % pair for pair in in_pytorch(rows)) + "\n")


def main():
    table, framework, output = sys.argv[1:]
    try:
        rows = make_operations.read(table)
        text = native(rows) if framework == "native" else json.dumps(for_front_end(rows, GROUPS[framework]), indent=1) + "\n"
    except RowError as error:
        sys.exit(str(error))
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
