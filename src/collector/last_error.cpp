// SPDX-License-Identifier: Apache-2.0
#include "collector/last_error.hpp"

#include <array>
#include <cstring>

namespace msprobe::collector {
namespace {

thread_local std::array<char, 1024> t_text = {};

}  // namespace

void set_last_error(const char* text) noexcept {
  std::strncpy(t_text.data(), text, t_text.size() - 1);
}

const char* last_error() noexcept {
  return t_text.data();
}

}  // namespace msprobe::collector
