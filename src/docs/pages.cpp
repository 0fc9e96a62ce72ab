// SPDX-License-Identifier: Apache-2.0
#include "docs/pages.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace msprobe::docs {
namespace {

namespace fs = std::filesystem;

constexpr int kBuildDepth = 3;  // SOURCES/build/src/msprobe

bool has_pages(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "docs" / "getting-started.md", error);
}

std::string title_of(const fs::path& path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("# ")) return line.substr(2);
  return {};
}

}  // namespace

std::optional<std::string> find_folder() {
  if (const char* named = std::getenv("MSPROBE_DOCS"); named != nullptr && *named != '\0') {
    if (has_pages(named)) return named;
    return std::nullopt;
  }
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  if (const fs::path installed = folder.parent_path() / "share" / "doc" / "msprobe"; has_pages(installed))
    return installed.string();
  for (int i = 0; i < kBuildDepth; ++i) {
    if (has_pages(folder) && fs::is_regular_file(folder / "meson.build", error)) return folder.string();
    folder = folder.parent_path();
  }
  return std::nullopt;
}

std::vector<DocsPage> list_pages(const std::string& folder) {
  const fs::path top = fs::path(folder) / "docs";
  std::vector<DocsPage> pages;
  std::error_code error;
  for (fs::recursive_directory_iterator i(top, error), end; !error && i != end; i.increment(error)) {
    if (i->path().extension() != ".md") continue;
    fs::path name = i->path().lexically_relative(top);
    pages.push_back({name.replace_extension().string(), title_of(i->path()), i->path().string()});
  }
  const fs::path skill = fs::path(folder) / "skills" / "msprobe" / "SKILL.md";
  if (fs::is_regular_file(skill, error)) pages.push_back({"skill", title_of(skill), skill.string()});
  std::ranges::sort(pages, {}, &DocsPage::name);
  return pages;
}

}  // namespace msprobe::docs
