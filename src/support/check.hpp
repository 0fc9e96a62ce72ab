// SPDX-License-Identifier: Apache-2.0
// Assertions about msprobe's own data, which stay on in release builds.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace msprobe {

/// A bug of msprobe, never of an input. It is no Error: code that turns the Error of one row or file into a
/// message, and continues, does not catch it. report_failures() prints it and returns status 2; the
/// collector's C functions return a failure.
class InternalError : public std::logic_error {
 public:
  InternalError(const std::string& invariant, const std::source_location& place);
};

/// Throws InternalError unless `holds`. `invariant` is a sentence that states what must hold, without a full
/// stop. A property of an input is no invariant: a file that lacks it is a FormatError.
inline void check(bool holds, const char* invariant,
                  const std::source_location& place = std::source_location::current()) {
  if (!holds) [[unlikely]]
    throw InternalError(invariant, place);
}

}  // namespace msprobe
