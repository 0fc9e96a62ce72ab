// SPDX-License-Identifier: Apache-2.0
// Arguments and results of a node as texts, for people to read (docs/formats.md, "Item texts").
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "dump/entry_items.hpp"

namespace msprobe {
class JsonWriter;
}

namespace msprobe::graph {

inline constexpr std::array<std::string_view, dump::kStatistics> kStatisticKeys = {"Max", "Min", "Mean",
                                                                                   "Norm"};

struct DataOptions {
  /// The values of the Python tool (docs/differences/graph_visualize.md, G2 to G5): no ' in any text and
  /// `null` for every None; no members of an item whose Max is null; an item is an output if its name says
  /// so. Of overflow levels: infinite means of finite elements count, and so do masks.
  bool python_values = false;
  bool compared = false;       // the graph is one of two: checksums are shown
  bool add_checksums = false;  // values without a recorded checksum get one
  bool as_release8 = false;  // numbers have six decimals, requires_grad is not shown; folders are as recorded
};

/// Members of a JSON object that are texts, in their order.
using TextMembers = std::vector<std::pair<std::string, std::string>>;

struct ItemText {
  std::string key;
  std::size_t number = 0;  // of the item
  bool output = false;
  bool closed = false;  // says nothing of a comparison
  TextMembers members;

  /// Empty if there is none.
  std::string_view member(std::string_view name) const;
};

/// A number with more than six decimals, perhaps a percentage, is shortened to six; other texts stay.
std::string short_decimal(std::string text);

/// A real number as releases 8.x show it: six decimals, or seven digits where it has an exponent.
std::string rounded_text(double value);

/// One for each item, in their order. `entry` is what they were made of.
std::vector<ItemText> item_texts(const dump::EntryItems& items, const dump::Entry& entry,
                                 std::string_view node, const DataOptions& options);

/// A JSON object of the outputs, or of all else. Of equal keys the first gives the place, the last the value.
void put_items(JsonWriter& json, const std::vector<ItemText>& items, bool outputs);

}  // namespace msprobe::graph
