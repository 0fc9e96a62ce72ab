// SPDX-License-Identifier: Apache-2.0
// Looks into folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace msprobe {

/// Links count as their targets. A path that cannot be examined does not exist.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

/// True for the folder itself and for paths below it. Both are in the form of std::filesystem::canonical().
bool is_beneath(const std::filesystem::path& path, const std::filesystem::path& folder);

enum class WhichNames : std::uint8_t { all, folders, regular_files };  // links count as their targets

/// Names in a folder, sorted. Throws IoError if it cannot be read.
std::vector<std::string> names_in(const std::string& folder, WhichNames which = WhichNames::all);

/// The folder of a model in Hugging Face's cache, if `folder` is one of its snapshots: the files of a
/// snapshot are links to `blobs` in that folder. Empty for other folders.
std::string cache_of_snapshot(const std::string& folder);

struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> files;  // regular ones
};

/// Both kinds from one pass over the folder, sorted. If it cannot be read, both are empty and `error` has the
/// reason.
Listing list_folder(const std::string& folder, std::error_code& error);

/// The path of the first folder in `folder` that has a file whose name `wanted` accepts; else empty.
std::string folder_below(const std::string& folder,
                         const std::function<bool(const std::string& file)>& wanted);

}  // namespace msprobe
