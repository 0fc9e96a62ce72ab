// SPDX-License-Identifier: Apache-2.0
// The environment variables of a process, without what nobody else should read.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// Takes the place of a secret.
inline constexpr std::string_view kMasked = "******";

struct EnvironmentOptions {
  /// Parts of names whose values are secret, in upper case; names are compared without regard to case.
  std::vector<std::string> secrets;
  /// Says whether a variable belongs into the pack; empty: all do.
  std::function<bool(std::string_view name)> wanted;
};

/// The variables of a list as `environ` is, in its order. In other values the password of a URL is masked.
Value environment(const char* const* variables, const EnvironmentOptions& options);

}  // namespace msprobe::pack
