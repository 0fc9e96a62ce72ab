// SPDX-License-Identifier: Apache-2.0
// Files of other projects, whose tensors have other names and forms: GGUF and Flax.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/name_map.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kExperts = "_exps.";

/// Adds each expert by itself: `blk.0.ffn_up_exps.3.weight`. Returns false if this is no tensor of experts.
bool add_experts(const CheckpointEntry& all, StackBudget& budget, std::vector<CheckpointEntry>& entries) {
  const std::string& name = all.parameter.name;
  const std::size_t at = name.find(kExperts);
  if (at == std::string::npos || !all.problem.empty() || all.parameter.shape.size() < 2) return false;
  const std::int64_t count = all.parameter.shape[0];
  if (!budget.take(count, all.parameter.blocks.size())) return false;
  const std::size_t behind = at + kExperts.size();
  for (std::int64_t expert = 0; expert < count; ++expert) {
    CheckpointEntry& one = entries.emplace_back();
    one.parameter = drop_axis(narrow(all.parameter, 0, expert, 1), 0);
    one.parameter.name = fmt::format("{}{}.{}", name.substr(0, behind), expert, name.substr(behind));
  }
  return true;
}

/// llama.cpp exchanges halves of heads for pairs in the rows of queries and keys of this architecture,
/// because its kernel for rotary embeddings needs pairs (permute() in its convert_hf_to_gguf.py).
constexpr std::string_view kPairedArchitecture = "llama";
constexpr std::int64_t kMostGgufHeads = 1024;

/// The rows of `heads` heads, in each head the even rows first, then the odd ones.
Parameter even_rows_first(const Parameter& parameter, std::int64_t heads) {
  const std::int64_t half = parameter.shape.at(0) / heads / 2;
  Shape pairs = parameter.shape;
  pairs[0] /= 2;
  pairs.insert(pairs.begin() + 1, 2);
  const Parameter in_pairs = reshaped(parameter, pairs);
  std::vector<Parameter> parts;
  for (std::int64_t head = 0; head < heads; ++head) {
    const Parameter rows = narrow(in_pairs, 0, head * half, half);
    for (const std::int64_t odd : {0, 1}) parts.push_back(drop_axis(narrow(rows, 1, odd, 1), 1));
  }
  return concatenate(parts, 0);
}

Architecture gguf_architecture(const formats::GgufFile& file) {
  return architecture_of({"attention.head_count", "attention.head_count_kv", "attention.key_length",
                          "vocab_size", "embedding_length"},
                         [&](const char* key) { return file.number(key); });
}

bool unpair(const formats::GgufFile& file, const Architecture& architecture, CheckpointEntry& entry) {
  if (file.architecture() != kPairedArchitecture || !entry.problem.empty()) return false;
  const std::string& name = entry.parameter.name;
  const bool is_query = name.ends_with(".attn_q.weight") || name.ends_with(".attn_q.bias");
  if (!is_query && !name.ends_with(".attn_k.weight") && !name.ends_with(".attn_k.bias")) return false;
  const std::int64_t heads = (is_query ? architecture.heads : architecture.query_groups).value_or(0);
  const Shape& shape = entry.parameter.shape;
  if (heads < 1 || heads > kMostGgufHeads || shape.empty() || shape[0] % (2 * heads) != 0) return false;
  entry.parameter = even_rows_first(entry.parameter, heads);
  return true;
}

constexpr std::string_view kKernel = ".kernel";
constexpr std::array<std::string_view, 3> kWeightSuffixes = {kKernel, ".scale", ".embedding"};
constexpr std::string_view kCollection = "params.";

}  // namespace

void add_gguf(Checkpoint& checkpoint, const std::shared_ptr<const formats::GgufFile>& file,
              const std::string& path) {
  static const NameMap map = NameMap::of_gguf();
  const Architecture architecture = gguf_architecture(*file);
  std::vector<CheckpointEntry> entries;
  StackBudget budget;
  std::size_t unpaired = 0;
  for (std::size_t i = 0; i < file->size(); ++i) {
    CheckpointEntry entry = entry_of(file, i, file->name(i));
    entry.parameter.has_searched_scales = file->has_searched_scales(i);
    if (unpair(*file, architecture, entry)) ++unpaired;
    if (!add_experts(entry, budget, entries)) entries.push_back(std::move(entry));
  }
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const CheckpointEntry& entry : entries) names.push_back(entry.parameter.name);
  for (const NameMap::Made& made : map.apply(names)) entries[made.from[0]].parameter.name = made.name;
  std::ranges::move(entries, std::back_inserter(checkpoint.entries));
  if (unpaired > 0) {
    checkpoint.warnings.push_back(fmt::format(
        "{}: rows of {} query and key tensors are reordered from interleaved pairs to halves of heads",
        display(path), unpaired));
  }
  if (!checkpoint.architecture.heads) checkpoint.architecture = architecture;
}

void add_flax(Checkpoint& checkpoint, const std::shared_ptr<const formats::FlaxFile>& file,
              const std::string& path) {
  std::unordered_set<std::string> names;
  bool all_in_collection = true;
  for (std::size_t i = 0; i < file->size(); ++i) {
    names.insert(file->name(i));
    all_in_collection = all_in_collection && file->name(i).starts_with(kCollection);
  }
  std::size_t count = 0;  // of kernels that are transposed
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
          ++count;
        }
      }
    }
    if (all_in_collection) name.erase(0, kCollection.size());
    entry.parameter.name = std::move(name);
    checkpoint.entries.push_back(std::move(entry));
  }
  if (count > 0) {
    checkpoint.warnings.push_back(fmt::format("{}: {} kernel{} of Flax compared transposed, as weights",
                                              display(path), count, count == 1 ? "" : "s"));
  }
}

}  // namespace msprobe::checkpoint
