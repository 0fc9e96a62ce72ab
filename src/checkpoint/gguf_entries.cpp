// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf_entries.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/name_map.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kExperts = "_exps.";
// A few bytes can claim any number of experts.
constexpr std::int64_t kMostExperts = std::int64_t{1} << 17;

/// Adds each expert by itself: `blk.0.ffn_up_exps.3.weight`. Returns false if this is no tensor of experts.
bool add_experts(const CheckpointEntry& all, std::int64_t& left, std::vector<CheckpointEntry>& entries) {
  const std::string& name = all.parameter.name;
  const std::size_t at = name.find(kExperts);
  if (at == std::string::npos || !all.problem.empty() || all.parameter.shape.size() < 2) return false;
  const std::int64_t count = all.parameter.shape[0];
  if (count > left) return false;
  left -= count;
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

bool unpair(const formats::GgufFile& file, CheckpointEntry& entry) {
  if (file.architecture() != kPairedArchitecture || !entry.problem.empty()) return false;
  const std::string& name = entry.parameter.name;
  const bool is_query = name.ends_with(".attn_q.weight") || name.ends_with(".attn_q.bias");
  if (!is_query && !name.ends_with(".attn_k.weight") && !name.ends_with(".attn_k.bias")) return false;
  const Architecture architecture = gguf_architecture(file);
  const std::int64_t heads = (is_query ? architecture.heads : architecture.query_groups).value_or(0);
  const Shape& shape = entry.parameter.shape;
  if (heads < 1 || heads > kMostGgufHeads || shape.empty() || shape[0] % (2 * heads) != 0) return false;
  entry.parameter = even_rows_first(entry.parameter, heads);
  return true;
}

}  // namespace

GgufEntries gguf_entries(const std::shared_ptr<const formats::GgufFile>& file) {
  static const NameMap map = NameMap::of_gguf();
  GgufEntries result;
  std::vector<CheckpointEntry>& entries = result.entries;
  std::int64_t left = kMostExperts;
  for (std::size_t i = 0; i < file->size(); ++i) {
    CheckpointEntry entry = entry_of(file, i, file->name(i));
    entry.parameter.has_searched_scales = file->has_searched_scales(i);
    if (unpair(*file, entry)) ++result.unpaired;
    if (!add_experts(entry, left, entries)) entries.push_back(std::move(entry));
  }
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const CheckpointEntry& entry : entries) names.push_back(entry.parameter.name);
  for (const NameMap::Made& made : map.apply(names)) entries[made.from[0]].parameter.name = made.name;
  return result;
}

Architecture gguf_architecture(const formats::GgufFile& file) {
  Architecture architecture;
  architecture.heads = file.number("attention.head_count");
  architecture.query_groups = file.number("attention.head_count_kv");
  if (!architecture.query_groups) architecture.query_groups = architecture.heads;
  architecture.head_size = file.number("attention.key_length");
  architecture.vocabulary = file.number("vocab_size");
  const auto hidden = file.number("embedding_length");
  if (!architecture.head_size && hidden && architecture.heads && *architecture.heads > 0)
    architecture.head_size = *hidden / *architecture.heads;
  return architecture;
}

}  // namespace msprobe::checkpoint
