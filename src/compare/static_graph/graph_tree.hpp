// SPDX-License-Identifier: Apache-2.0
// Which parts of a static-graph dump of MindSpore are compared.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/imports.hpp"

namespace msprobe::compare {

/// Numbers and ranges as they are typed: `0,2-5`. Holds every number if it is empty.
class NumberList {
 public:
  /// UsageError naming the option for anything else.
  static NumberList parse(std::string_view option, std::string_view text);
  void add(std::int64_t first, std::int64_t last) { ranges_.emplace_back(first, last); }
  bool contains(std::int64_t number) const;
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// Which parts of a static-graph dump to compare.
struct GraphSelection {
  NumberList ranks;
  NumberList steps;
};

}  // namespace msprobe::compare
