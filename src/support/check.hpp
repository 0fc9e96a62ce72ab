// SPDX-License-Identifier: Apache-2.0
// Assertions about msprobe's own data, which stay on in release builds.
#pragma once

#include <stdexcept>
#include <string>

namespace msprobe {

/// A bug of msprobe, never an error in an input. It does not derive from Error, so code that turns the Error
/// of one row or file into a message, and continues, does not catch it. report_failures() prints it and
/// returns status 2; the collector's C functions return a failure.
class InternalError : public std::logic_error {
 public:
  InternalError(const std::string& invariant, const char* file, int line);
};

/// Throws InternalError unless `holds`. `invariant` is a sentence that states what must hold, without a full
/// stop. A property of an input is no invariant: a file that lacks it is a FormatError.
/// The caller's file and line come from the compiler's builtins: clang 14 has no std::source_location.
inline void check(bool holds, const char* invariant, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) [[unlikely]]
    throw InternalError(invariant, file, line);
}

}  // namespace msprobe
