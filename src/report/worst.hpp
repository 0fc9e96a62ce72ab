// SPDX-License-Identifier: Apache-2.0
// The worst of many rows, and how a summary shows them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/severity.hpp"

namespace msprobe::report {

/// Keeps the worst of many items; the list never grows with the number of items. `worse(a, b)` must order any
/// two items, or the selection would depend on chance.
template <class Item, class Worse>
class Worst {
 public:
  Worst(std::size_t count, Worse worse) : count_(count), worse_(std::move(worse)) {}

  void add(Item item) {
    items_.push_back(std::move(item));
    if (items_.size() < 64 * std::max<std::size_t>(count_, 10)) return;
    std::nth_element(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(count_), items_.end(),
                     worse_);
    items_.resize(count_);
  }
  /// The worst first.
  std::vector<Item> take() {
    std::ranges::sort(items_, worse_);
    items_.resize(std::min(items_.size(), count_));
    return std::move(items_);
  }

 private:
  std::size_t count_;
  Worse worse_;
  std::vector<Item> items_;
};

struct WorstLine {
  Severity severity = Severity::none;
  std::vector<std::string> cells;
};

/// "worst 3:", or "worst 3 by Cosine:", and the lines in their colours. As wide as the terminal of stderr.
std::string render_worst(std::vector<WorstLine> lines, std::string_view by, bool color);

}  // namespace msprobe::report
