// SPDX-License-Identifier: Apache-2.0
// The answer for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "anomaly/analyze.hpp"
#include "dump/entry.hpp"

namespace msprobe::anomaly {

/// One value of an entry in a few words: `float32[2, 3] min -1.0 max inf`.
std::string describe(const dump::Entry& entry, dump::Entry::Index node);

struct AnswerStyle {
  bool color = false;
  std::size_t width = 100;
};

/// Each root in a few lines: its kind, its place, its inputs and outputs, and how far it spread.
std::string render_answer(const Analysis& analysis, const AnomalyRules& rules, const AnswerStyle& style);

/// Counts of a listing and its first lines.
std::string render_listing(const Analysis& analysis, AnomalyListing listing, const AnswerStyle& style);

}  // namespace msprobe::anomaly
