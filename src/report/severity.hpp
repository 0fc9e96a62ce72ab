// SPDX-License-Identifier: Apache-2.0
// How bad a row of any result is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe::report {

enum class Severity : std::uint8_t { none, warning, error };

/// How many of each.
struct SeverityCounts {
  std::size_t errors = 0;
  std::size_t warnings = 0;

  void add(Severity severity) {
    errors += severity == Severity::error;
    warnings += severity == Severity::warning;
  }
  Severity worst() const {
    return errors != 0 ? Severity::error : warnings != 0 ? Severity::warning : Severity::none;
  }
};

}  // namespace msprobe::report
