// SPDX-License-Identifier: Apache-2.0
// Entries of literal text.
#pragma once

#include <string>

#include "dump/member_stream.hpp"

namespace msprobe::dump {

/// The tree of one JSON value.
inline Entry entry_of(const std::string& text) {
  return read_json(text, "memory");
}

}  // namespace msprobe::dump
