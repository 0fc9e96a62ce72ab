// SPDX-License-Identifier: Apache-2.0
// Checks of values that both layouts' configurations share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "series/python_value.hpp"

namespace msprobe::collector::monitor {

using series::Json;

/// Reads whole numbers; a wrong one gives a warning and its default.
class NumberChecks {
 public:
  NumberChecks(const Json& object, std::vector<std::string>& warnings)
      : object_(object), warnings_(warnings) {}

  /// `shown`: how the warning spells the default.
  std::uint64_t at_least(const char* key, std::int64_t least, std::uint64_t fallback,
                         const std::string& shown);

 private:
  const Json& object_;
  std::vector<std::string>& warnings_;
};

/// The elements of a list of ranks. Throws SettingError (TypeError) if one is no whole number.
std::vector<std::int64_t> rank_list(const Json& list);

}  // namespace msprobe::collector::monitor
