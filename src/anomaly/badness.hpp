// SPDX-License-Identifier: Apache-2.0
// When is a value bad (spec: NaN or Inf as Max or Min), and where in an entry.
#pragma once

#include <cstdint>
#include <string_view>

#include "anomaly/rules.hpp"
#include "dump/entry.hpp"

namespace msprobe::anomaly {

/// kNan, kInf, both or neither.
using Bad = std::uint8_t;
inline constexpr Bad kNan = 1;
inline constexpr Bad kInf = 2;

/// "NaN", "Inf", "NaN and Inf"; "clean" for neither.
std::string_view bad_name(Bad bad);

/// What the text of a statistic says in any case: `nan`, `inf`, `-inf`; `tab`: also with a tab behind.
Bad bad_text(std::string_view text, bool tab);
/// The same of a value in an entry, with the numbers that are too large for a double.
Bad bad_statistic(const dump::Entry& entry, dump::Entry::Index node, bool tab = true);

/// Max and Min of an object; nothing for anything else.
Bad bad_item(const dump::Entry& entry, dump::Entry::Index node);
/// The same of the object and of all objects below it, in lists and in objects. `as_input`: without tensors
/// that a transfer receives into.
Bad bad_anywhere(const dump::Entry& entry, dump::Entry::Index node, bool as_input = false);

struct EntryBadness {
  Bad inputs = 0;     // of all input sections
  Bad arguments = 0;  // of input_args and input_kwargs only
  Bad outputs = 0;
};

/// `nested`: look below the items too. `write_only`: arguments to leave out, or null.
EntryBadness judge_entry(const dump::Entry& entry, bool nested, const Places* write_only);

}  // namespace msprobe::anomaly
