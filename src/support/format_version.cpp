// SPDX-License-Identifier: Apache-2.0
#include "support/format_version.hpp"

#include <fmt/format.h>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe {

void check_format_version(const std::string& file, std::string_view version, std::uint64_t newest) {
  constexpr std::size_t kShown = 20;
  if (whole_number<std::uint64_t>(version).value_or(UINT64_MAX) <= newest) return;
  throw FormatError(
      display(file),
      is_digits(version)
          ? fmt::format("a later msprobe wrote it, in format {}; msprobe {} reads formats up to {}",
                        display(version.substr(0, kShown)), kVersion, newest)
          : fmt::format("its format '{}' is unknown to msprobe {}", display(version.substr(0, kShown)),
                        kVersion));
}

}  // namespace msprobe
