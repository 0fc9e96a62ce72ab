// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/flax_entries.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/loaders.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kKernel = ".kernel";
constexpr std::array<std::string_view, 3> kWeightSuffixes = {kKernel, ".scale", ".embedding"};
constexpr std::string_view kCollection = "params.";

}  // namespace

FlaxEntries flax_entries(const std::shared_ptr<const formats::FlaxFile>& file) {
  std::unordered_set<std::string> names;
  bool all_in_collection = true;
  for (std::size_t i = 0; i < file->size(); ++i) {
    names.insert(file->name(i));
    all_in_collection = all_in_collection && file->name(i).starts_with(kCollection);
  }
  FlaxEntries result;
  for (std::size_t i = 0; i < file->size(); ++i) {
    std::string name = file->name(i);
    CheckpointEntry entry = entry_of(file, i, name);
    const auto* suffix =
        std::ranges::find_if(kWeightSuffixes, [&](std::string_view each) { return name.ends_with(each); });
    if (suffix != kWeightSuffixes.end()) {
      const std::string renamed = name.substr(0, name.size() - suffix->size()) + ".weight";
      // If two would get the same name, the second keeps its old one.
      if (names.insert(renamed).second) {
        name = renamed;
        if (*suffix == kKernel && entry.problem.empty() && entry.parameter.shape.size() == 2) {
          entry.parameter = transposed(entry.parameter);
          ++result.transposed;
        }
      }
    }
    if (all_in_collection) name.erase(0, kCollection.size());
    entry.parameter.name = std::move(name);
    result.entries.push_back(std::move(entry));
  }
  return result;
}

}  // namespace msprobe::checkpoint
