// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dump/tree.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::int64_t kMostNumber = 1'000'000;

}  // namespace

NumberList NumberList::parse(std::string_view option, std::string_view text) {
  NumberList list;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = trimmed(text.substr(0, comma));
    const std::size_t dash = part.find('-');
    const auto number = [](std::string_view digits) { return dump::number_after(trimmed(digits), ""); };
    const auto first = number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *last > kMostNumber) {
      throw UsageError(fmt::format("{}: '{}' is neither a number up to {} nor a range such as 2-5", option,
                                   display(part), kMostNumber));
    }
    if (*first > *last) {
      throw UsageError(fmt::format("{}: the range '{}' runs backwards", option, display(part)));
    }
    list.add(*first, *last);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) throw UsageError(fmt::format("{}: a number is missing after the last comma", option));
  }
  return list;
}

bool NumberList::contains(std::int64_t number) const {
  return empty() || std::ranges::any_of(ranges_, [&](const auto& range) {
           return range.first <= number && number <= range.second;
         });
}

}  // namespace msprobe::compare
