// SPDX-License-Identifier: Apache-2.0
// Selects the parts of a static-graph dump of MindSpore that are compared.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe::compare {

/// Numbers and ranges as they are typed: `0,2-5`. An empty list contains every number.
class NumberList {
 public:
  /// Throws UsageError with the option for anything else.
  static NumberList parse(std::string_view option, std::string_view text);
  void add(std::int64_t first, std::int64_t last) { ranges_.emplace_back(first, last); }
  bool contains(std::int64_t number) const;
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// The parts of a static-graph dump to compare.
struct GraphSelection {
  NumberList ranks;
  NumberList steps;
};

}  // namespace msprobe::compare
