// SPDX-License-Identifier: Apache-2.0
#include "support/versions.hpp"

#include <fmt/format.h>
#include <yaml.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <nlohmann/json_fwd.hpp>

#include "support/parallel.hpp"

namespace msprobe {

std::string version_text() {
  const int fmt_version = FMT_VERSION;
  std::string text = "msprobe " MSPROBE_VERSION "\n";
  const auto add = [&text](std::string_view library, std::string_view version) {
    text += fmt::format("  {} {}\n", library, version);
  };
  add("CLI11", CLI11_VERSION);
  add("nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                   NLOHMANN_JSON_VERSION_PATCH));
  add("oneTBB", tbb_version());
  add("libyaml", yaml_get_version_string());
  add("zlib", zlibVersion());
  add("fmt", fmt::format("{}.{}.{}", fmt_version / 10000, fmt_version / 100 % 100, fmt_version % 100));
  return text;
}

}  // namespace msprobe
