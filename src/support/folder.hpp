// SPDX-License-Identifier: Apache-2.0
// What is in a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace msprobe {

/// Links count as what they lead to; what cannot be looked at is not there.
bool path_exists(const std::string& path);
bool is_folder(const std::string& path);

/// Is it the folder itself, or below it? Both as std::filesystem::canonical() gives them.
bool is_beneath(const std::filesystem::path& path, const std::filesystem::path& folder);

enum class Named : std::uint8_t { all, folders, regular_files };  // links count as what they lead to

/// Names in a folder, sorted. IoError if it cannot be read.
std::vector<std::string> names_in(const std::string& folder, Named which = Named::all);

/// The folder of a model in Hugging Face's cache, if `folder` is one of its snapshots: the files there are
/// links to `blobs` of that folder. Empty if it is not.
std::string cache_of_snapshot(const std::string& folder);

struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> files;  // regular ones
};

/// Both kinds by one pass over the folder, sorted. Nothing, and the reason, if it cannot be read.
Listing list_folder(const std::string& folder, std::error_code& error);

/// The path of the first folder in `folder` with a file whose name `wanted` takes; empty if there is none.
std::string folder_below(const std::string& folder,
                         const std::function<bool(const std::string& file)>& wanted);

}  // namespace msprobe
