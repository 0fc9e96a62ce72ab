// SPDX-License-Identifier: Apache-2.0
// The arguments and results of a node as texts for people (docs/formats.md, "Item texts").
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
  /// `null` for every None; no members for an item whose Max is null; an item is an output if its name says
  /// so. For overflow levels, infinite means of finite elements count, and so do masks.
  bool python_values = false;
  bool compared = false;       // the graph is one of two: checksums are shown
  bool add_checksums = false;  // values without a recorded checksum get one
  bool as_release8 = false;    // six decimals, no requires_grad, folder names as recorded
};

/// Members of a JSON object that are texts, in their order.
using TextMembers = std::vector<std::pair<std::string, std::string>>;

struct ItemText {
  std::string key;
  std::size_t number = 0;  // of the item
  bool output = false;
  bool closed = false;  // the item takes no results of a comparison
  TextMembers members;
};

/// A number with more than six decimals, perhaps a percentage, is shortened to six; other texts stay.
std::string short_decimal(std::string text);

/// A real number as releases 8.x show it: six decimals, or seven digits where it has an exponent.
std::string rounded_text(double value);

/// One text for each item of `items`, which was made from `entry`, in the same order.
std::vector<ItemText> item_texts(const dump::EntryItems& items, const dump::Entry& entry,
                                 std::string_view node, const DataOptions& options);

/// Writes the outputs, or all other items, as a JSON object. If a key occurs again, its first occurrence
/// determines the place and its last one the value.
void put_items(JsonWriter& json, const std::vector<ItemText>& items, bool outputs);

}  // namespace msprobe::graph
