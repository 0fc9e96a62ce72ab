// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/unread_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "checkpoint/loaders.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

struct FolderMark {
  std::string_view name;  // of a file or folder
  std::string_view what;
};

constexpr std::string_view kOrbax = "an Orbax checkpoint";
constexpr std::array kMarks = {
    FolderMark{"_CHECKPOINT_METADATA", kOrbax},
    FolderMark{"manifest.ocdbt", kOrbax},
    FolderMark{"saved_model.pb", "a SavedModel of TensorFlow"},
    FolderMark{"fingerprint.pb", "a SavedModel of TensorFlow"},
};

/// Files that huggingface_hub began to download; their incomplete part has this ending.
std::string unfinished_download(const std::string& folder) {
  const std::string cache = cache_of_snapshot(folder);
  const std::array places = {in_folder(folder, ".cache/huggingface/download"), in_folder(folder, "blobs"),
                             cache.empty() ? std::string() : in_folder(cache, "blobs")};
  for (const std::string& place : places) {
    if (place.empty() || !is_folder(place)) continue;
    std::error_code error;
    for (const std::string& name : list_folder(place, error).files) {
      if (!name.ends_with(".incomplete")) continue;
      return fmt::format(
          "a download that was not finished ({}): fetch it again, which goes on where it stopped",
          display(in_folder(place, name)));
    }
  }
  return {};
}

}  // namespace

std::string unread_folder_reason(const std::string& folder) {
  std::error_code error;
  const Listing listing = list_folder(folder, error);
  for (const FolderMark& mark : kMarks) {
    const auto is_marked = [&](const std::string& name) { return name == mark.name; };
    if (std::ranges::any_of(listing.files, is_marked))
      return fmt::format("{}, which msprobe does not read: save its weights as safetensors or npz",
                         mark.what);
  }
  // TensorFlow's own form: PREFIX.index beside PREFIX.data-00000-of-00001.
  for (const std::string& name : listing.files) {
    constexpr std::string_view kIndex = ".index";
    if (!name.ends_with(kIndex)) continue;
    const std::string data = name.substr(0, name.size() - kIndex.size()) + ".data-";
    if (std::ranges::any_of(listing.files, [&](const std::string& each) { return each.starts_with(data); }))
      return "a TensorFlow checkpoint, which msprobe does not read: save its weights as safetensors or npz";
  }
  return unfinished_download(folder);
}

}  // namespace msprobe::checkpoint
