// SPDX-License-Identifier: Apache-2.0
#include "pack/environment.hpp"

#include <algorithm>

#include "support/ascii.hpp"

namespace msprobe::pack {
namespace {

/// Masks the password in `http://user:password@host` at every place of the text.
std::string mask_urls(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  for (std::size_t at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 1)) {
    if (at < done) continue;
    const std::size_t user = at + 3;
    const std::size_t end = std::min(text.find_first_of("/?# \t\n,;\"'", user), text.size());
    const std::size_t host = text.substr(0, end).rfind('@');
    if (host == std::string_view::npos || host < user) continue;
    const std::size_t colon = text.substr(0, host).find(':', user);
    if (colon == std::string_view::npos) continue;
    out += text.substr(done, colon + 1 - done);
    out += kMasked;
    done = host;
  }
  out += text.substr(done);
  return out;
}

}  // namespace

PackValue environment(const char* const* variables, const EnvironmentOptions& options) {
  PackValue map = PackValue::map();
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view whole = *variables;
    const std::size_t equals = whole.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = whole.substr(0, equals);
    const std::string_view value = whole.substr(equals + 1);
    if (options.wanted && !options.wanted(name)) continue;
    const bool secret = std::ranges::any_of(options.secrets, [&](const std::string& part) {
      return lower_case(name).find(lower_case(part)) != std::string::npos;
    });
    map.push(std::string(name), PackValue::of_text(secret ? std::string(kMasked) : mask_urls(value)));
  }
  map.settle();
  return map;
}

}  // namespace msprobe::pack
