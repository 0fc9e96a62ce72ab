// SPDX-License-Identifier: Apache-2.0
// The environment variables of a process, with secrets masked.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// The text that replaces a secret.
inline constexpr std::string_view kMasked = "******";

struct EnvironmentOptions {
  /// Parts of names whose values are secret, in any case.
  std::vector<std::string> secrets;
  /// Decides whether a variable belongs in the pack; if it is empty, all variables do.
  std::function<bool(std::string_view name)> wanted;
};

/// The variables of a list like `environ`, in its order. In values that are not secret, passwords in URLs are
/// masked.
PackValue environment(const char* const* variables, const EnvironmentOptions& options);

}  // namespace msprobe::pack
