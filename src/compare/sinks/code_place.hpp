// SPDX-License-Identifier: Apache-2.0
// The parts of the line of code of a finding.
#pragma once

#include <optional>
#include <string_view>

#include "diagnosis/finding.hpp"
#include "dump/stack_json.hpp"

namespace msprobe::compare {

/// Finding::where in its parts.
struct CodePlace {
  bool in_golden = false;
  std::string_view frame;                // without the words that name the side
  std::optional<dump::SourceLine> line;  // nothing if the frame has another form
};

inline CodePlace code_place(std::string_view where) {
  CodePlace place;
  place.in_golden = where.starts_with(diagnosis::kInGolden);
  if (place.in_golden) where.remove_prefix(diagnosis::kInGolden.size());
  place.frame = where;
  place.line = dump::source_line(where);
  return place;
}

}  // namespace msprobe::compare
