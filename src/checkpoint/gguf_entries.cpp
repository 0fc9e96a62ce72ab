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
// A few bytes can claim any number of them.
constexpr std::int64_t kMostExperts = std::int64_t{1} << 17;

/// Adds each expert by itself: `blk.0.ffn_up_exps.3.weight`. False if this is no tensor of experts.
bool add_experts(const Entry& all, std::int64_t& left, std::vector<Entry>& entries) {
  const std::string& name = all.parameter.name;
  const std::size_t at = name.find(kExperts);
  if (at == std::string::npos || !all.problem.empty() || all.parameter.shape.size() < 2) return false;
  const std::int64_t count = all.parameter.shape[0];
  if (count > left) return false;
  left -= count;
  const std::size_t behind = at + kExperts.size();
  for (std::int64_t expert = 0; expert < count; ++expert) {
    Entry& one = entries.emplace_back();
    one.parameter = drop_axis(narrow(all.parameter, 0, expert, 1), 0);
    one.parameter.name = fmt::format("{}{}.{}", name.substr(0, behind), expert, name.substr(behind));
  }
  return true;
}

}  // namespace

std::vector<Entry> gguf_entries(const std::shared_ptr<const formats::GgufFile>& file) {
  static const NameMap map = NameMap::of_gguf();
  std::vector<Entry> entries;
  std::int64_t left = kMostExperts;
  for (std::size_t i = 0; i < file->size(); ++i) {
    Entry entry = entry_of(file, i, file->name(i));
    if (!add_experts(entry, left, entries)) entries.push_back(std::move(entry));
  }
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.parameter.name);
  for (const NameMap::Made& made : map.apply(names)) entries[made.from[0]].parameter.name = made.name;
  return entries;
}

Architecture gguf_architecture(const formats::GgufFile& file) {
  Architecture architecture;
  architecture.heads = file.number("attention.head_count");
  architecture.query_groups = file.number("attention.head_count_kv");
  if (!architecture.query_groups) architecture.query_groups = architecture.heads;
  architecture.head_size = file.number("attention.key_length");
  const auto hidden = file.number("embedding_length");
  if (!architecture.head_size && hidden && architecture.heads && *architecture.heads > 0)
    architecture.head_size = *hidden / *architecture.heads;
  return architecture;
}

}  // namespace msprobe::checkpoint
