// SPDX-License-Identifier: Apache-2.0
#include "support/folder.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace fs = std::filesystem;

bool path_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_beneath(const fs::path& path, const fs::path& folder) {
  const auto end = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first;
  return end == folder.end();
}

std::vector<std::string> names_in(const std::string& folder, WhichNames which) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (which == WhichNames::folders && !entry->is_directory(ignored)) continue;
    if (which == WhichNames::regular_files && !entry->is_regular_file(ignored)) continue;
    names.push_back(entry->path().filename().string());
  }
  if (error) throw IoError(display(folder), error.message());
  std::ranges::sort(names);
  return names;
}

std::string cache_of_snapshot(const std::string& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || real.parent_path().filename() != "snapshots") return {};
  const fs::path cache = real.parent_path().parent_path();
  return is_folder((cache / "blobs").string()) ? cache.string() : std::string();
}

Listing list_folder(const std::string& folder, std::error_code& error) {
  Listing listing;
  error.clear();
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    std::string name = entry->path().filename().string();
    if (entry->is_directory(ignored)) {
      listing.folders.push_back(std::move(name));
    } else if (entry->is_regular_file(ignored)) {
      listing.files.push_back(std::move(name));
    }
  }
  if (error) return {};
  std::ranges::sort(listing.folders);
  std::ranges::sort(listing.files);
  return listing;
}

std::string folder_below(const std::string& folder,
                         const std::function<bool(const std::string& file)>& wanted) {
  std::error_code ignored;
  for (const std::string& name : list_folder(folder, ignored).folders) {
    std::string below = folder + (folder.ends_with('/') ? "" : "/") + name;
    const std::vector<std::string> files = list_folder(below, ignored).files;
    if (std::ranges::any_of(files, wanted)) return below;
  }
  return {};
}

}  // namespace msprobe
