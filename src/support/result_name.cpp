// SPDX-License-Identifier: Apache-2.0
#include "support/result_name.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "support/folder.hpp"

namespace msprobe {

std::string time_stamp(std::time_t when) {
  return fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(when));
}

std::string unused_path(const std::string& stem, std::string_view suffix) {
  std::string path = fmt::format("{}{}", stem, suffix);
  for (int number = 1; path_exists(path); ++number) path = fmt::format("{}_{}{}", stem, number, suffix);
  return path;
}

}  // namespace msprobe
