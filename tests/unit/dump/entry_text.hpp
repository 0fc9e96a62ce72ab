// SPDX-License-Identifier: Apache-2.0
// Entries of literal text.
#pragma once

#include <string>
#include <string_view>

#include "dump/member_stream.hpp"

namespace msprobe::dump {

/// The tree of one JSON value.
inline Entry entry_of(const std::string& text) {
  const std::string padded = text + std::string(kScanPadding, '\0');
  Entry entry;
  build_entry(std::string_view(padded).substr(0, text.size()), entry, "memory", "value");
  return entry;
}

}  // namespace msprobe::dump
