// SPDX-License-Identifier: Apache-2.0
// The entries of a rank as JSON, in the Python tool's form.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "dump/side.hpp"
#include "report/table.hpp"
#include "support/json_writer.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// Rows `first` up to, not including, `last`.
struct EntryRows {
  std::size_t first = 0;
  std::size_t last = 0;
};

class RankJson {
 public:
  explicit RankJson(const verdict::RankResult& result);

  /// Writes `"name": {"is_same": …, "op_items": […]}` as a member of the file's object.
  void add_entry(JsonWriter& json, std::string_view name, EntryRows rows, bool is_same);
  /// The entry as an element of a rank's list in diff_analyze_*.json.
  std::string info(std::string_view name, EntryRows rows);

 private:
  void add_row(JsonWriter& json, std::string_view entry, std::size_t index);
  std::string_view result_text(const dump::Item& item, const dump::Item* golden) const;
  void add_message(JsonWriter& json, const dump::Item& item, const dump::Item* golden) const;

  const verdict::RankResult& result_;
  RankRows rows_;
  std::vector<std::size_t> measures_;  // columns of the statistics under test, or of the checksum
  std::vector<report::Cell> cells_;
  report::Scratch scratch_;
};

inline constexpr int kDifferenceIndent = 2;  // of diff_analyze_*.json

}  // namespace msprobe::compare
