// SPDX-License-Identifier: Apache-2.0
// The entries of a rank as JSON, in the Python tool's words.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compare/analysis/traits.hpp"
#include "compare/dump_tree/rank_rows.hpp"
#include "compare/result/result.hpp"
#include "report/table.hpp"

namespace msprobe::compare {

/// Rows `first` up to, not including, `last`.
struct EntryRows {
  std::size_t first = 0;
  std::size_t last = 0;
};

class RankJson {
 public:
  RankJson(const RankResult& result, const SearchTraits& traits);

  /// `"name": {"is_same": …, "op_items": […]}` as a member of the file's object (indent 4).
  void append_entry(std::string& out, std::string_view name, EntryRows rows, bool is_same);
  /// The entry as an element of a rank's list in diff_analyze_*.json (indent 2).
  std::string info(std::string_view name, EntryRows rows);

 private:
  void append_row(std::string& out, std::string_view entry, std::size_t index);
  void append_measures(std::string& out, std::size_t index);
  std::string_view result_text(const Item& item, const Item* golden) const;
  std::string_view message_text(const Item& item, const Item* golden) const;
  std::string peer(const Side& side, const Item* item) const;
  std::string operation(const Side& side, const Item* item) const;

  const RankResult& result_;
  SearchTraits traits_;
  RankRows rows_;
  std::vector<std::string> keys_;      // the columns as JSON strings
  std::vector<std::size_t> measures_;  // columns of the statistics under test, or of its checksum
  std::vector<report::Cell> cells_;
  report::Scratch scratch_;
};

}  // namespace msprobe::compare
