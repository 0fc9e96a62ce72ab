// SPDX-License-Identifier: Apache-2.0
// The colour that a verdict has in tables.
#pragma once

#include "compare/result/result.hpp"
#include "report/table.hpp"

namespace msprobe::compare {

inline report::Severity severity_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return report::Severity::none;
    case Verdict::warning:
      return report::Severity::warning;
    case Verdict::error:
      break;
  }
  return report::Severity::error;
}

}  // namespace msprobe::compare
