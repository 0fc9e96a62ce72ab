// SPDX-License-Identifier: Apache-2.0
#include "support/versions.hpp"

#include <expat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <histedit.h>
#include <libdeflate.h>
#include <link.h>
#include <sqlite3.h>
#include <yaml.h>
#include <zlib.h>

#include <CLI/Version.hpp>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>

#include "support/parallel.hpp"
#include "support/version.hpp"

namespace msprobe {

bool linked_statically() {
  bool loader = false;
  // The program itself comes first; a static program has no other object.
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        for (std::size_t i = 0; i < object->dlpi_phnum; ++i) {
          if (object->dlpi_phdr[i].p_type == PT_INTERP) *static_cast<bool*>(found) = true;
        }
        return 1;
      },
      &loader);
  return !loader;
}

std::string version_text(std::string_view kernels, const std::vector<std::string_view>& available) {
  const int fmt_version = FMT_VERSION;
  std::string text = fmt::format("msprobe {}\n", kVersion);
  const XML_Expat_Version expat = XML_ExpatVersionInfo();
  const auto add = [&text](std::string_view library, std::string_view version) {
    text += fmt::format("  {} {}\n", library, version);
  };
  add("CLI11", CLI11_VERSION);
  add("nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                   NLOHMANN_JSON_VERSION_PATCH));
  add("oneTBB", tbb_version());
  add("libyaml", yaml_get_version_string());
  add("zlib", zlibVersion());
  add("libdeflate", LIBDEFLATE_VERSION_STRING);
  add("fmt", fmt::format("{}.{}.{}", fmt_version / 10000, fmt_version / 100 % 100, fmt_version % 100));
  add("libexpat", fmt::format("{}.{}.{}", expat.major, expat.minor, expat.micro));
  add("SQLite", sqlite3_libversion());
  add("libedit", fmt::format("{}.{}", LIBEDIT_MAJOR, LIBEDIT_MINOR));
#ifdef __clang__
  add("compiler", "Clang " __clang_version__);
#else
  add("compiler", "GCC " __VERSION__);
#endif
  add("linked", linked_statically() ? "statically" : "with shared libraries");
  add("arithmetic", fmt::format("{} (of {})", kernels, fmt::join(available, ", ")));
  return text;
}

}  // namespace msprobe
