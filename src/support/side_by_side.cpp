// SPDX-License-Identifier: Apache-2.0
#include "support/side_by_side.hpp"

#include <string_view>
#include <system_error>
#include <vector>

#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    found.push_back(entry->path());
  return found;
}

}  // namespace

std::optional<std::string> python_tool_beside(const fs::path& program) {
  for (const fs::path& python : entries_of(program.parent_path().parent_path() / "lib")) {
    if (!python.filename().string().starts_with("python3")) continue;
    for (const std::string_view packages : {"site-packages", "dist-packages"}) {
      const fs::path folder = python / packages;
      for (const fs::path& entry : entries_of(folder)) {
        const std::string name = entry.filename().string();
        if (name.starts_with("mindstudio_probe-") && name.ends_with(".dist-info")) return folder.string();
      }
    }
  }
  return std::nullopt;
}

void warn_of_python_tool() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return;
  if (const auto folder = python_tool_beside(program)) {
    log_warning("mindstudio-probe is installed in the same place (" + display(*folder) +
                "), and its files have the names of this msprobe's: removing either breaks the other. "
                "pip uninstall both, then install one of them, or each into a separate environment");
  }
}

}  // namespace msprobe
