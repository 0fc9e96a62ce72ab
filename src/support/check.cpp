// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <string_view>

namespace msprobe {
namespace {

/// The path within the source tree; the compiler's path depends on where msprobe was built.
std::string_view in_source(std::string_view path) {
  const std::size_t folder = path.rfind("src/");
  return folder == std::string_view::npos ? path : path.substr(folder);
}

}  // namespace

InternalError::InternalError(const std::string& invariant, const char* file, int line)
    : std::logic_error("internal error, please report it: " + std::string(in_source(file)) + ":" +
                       std::to_string(line) + ": an invariant does not hold: " + invariant) {}

}  // namespace msprobe
