// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/names.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

// What programs put before the names of their model.
constexpr std::array<std::string_view, 12> kPrefixes = {
    "model.",         "module.",       "state_dict.", "model_state_dict.", "model.module.",
    "module.module.", "module.model.", "_orig_mod.",  "module._orig_mod.", "app.model.",
    "app.",           "network."};

/// One way to read the names of a side.
struct Variant {
  std::string_view prefix;
  bool mapped = false;
  std::vector<NameMap::Made> made;
  std::unordered_map<std::string, std::size_t> keys;  // index into `made`
};

/// The names without the prefix; those that would then be called like another one keep theirs.
std::vector<std::string> without_prefix(const std::vector<Entry>& entries, std::string_view prefix) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (const Entry& entry : entries) {
    if (!entry.parameter.name.starts_with(prefix) || prefix.empty()) taken.insert(entry.parameter.name);
  }
  for (const Entry& entry : entries) {
    const std::string& name = entry.parameter.name;
    if (!prefix.empty() && name.starts_with(prefix) && name.size() > prefix.size()) {
      std::string shorter = name.substr(prefix.size());
      if (taken.insert(shorter).second) {
        names.push_back(std::move(shorter));
        continue;
      }
    }
    names.push_back(name);
  }
  return names;
}

std::vector<Variant> variants_of(const Checkpoint& checkpoint, const NameMap& map) {
  std::vector<std::string_view> prefixes = {""};
  if (!checkpoint.megatron_names) {
    for (const std::string_view prefix : kPrefixes) {
      const bool occurs =
          std::any_of(checkpoint.entries.begin(), checkpoint.entries.end(),
                      [&](const Entry& entry) { return entry.parameter.name.starts_with(prefix); });
      if (occurs) prefixes.push_back(prefix);
    }
  }
  std::vector<Variant> variants;
  for (const std::string_view prefix : prefixes) {
    const std::vector<std::string> names = without_prefix(checkpoint.entries, prefix);
    for (const bool mapped : {false, true}) {
      Variant variant;
      variant.prefix = prefix;
      variant.mapped = mapped;
      if (mapped) {
        variant.made = map.apply(names);
        // A map that takes nothing is no variant of its own.
        const bool same =
            std::all_of(variant.made.begin(), variant.made.end(), [&](const NameMap::Made& made) {
              return made.from.size() == 1 && made.name == names[made.from[0]];
            });
        if (same) continue;
      } else {
        for (std::size_t i = 0; i < names.size(); ++i) variant.made.push_back({names[i], {i}, Join::none});
      }
      for (std::size_t i = 0; i < variant.made.size(); ++i) {
        // Two that mean the same are kept apart, so that neither is lost; the later one then matches nothing.
        std::string key = expert_key(variant.made[i].name);
        while (!variant.keys.emplace(key, i).second) key += '\n';
      }
      variants.push_back(std::move(variant));
    }
  }
  return variants;
}

std::size_t common_keys(const Variant& a, const Variant& b) {
  const Variant& smaller = a.keys.size() <= b.keys.size() ? a : b;
  const Variant& larger = &smaller == &a ? b : a;
  return static_cast<std::size_t>(
      std::count_if(smaller.keys.begin(), smaller.keys.end(),
                    [&](const auto& key) { return larger.keys.find(key.first) != larger.keys.end(); }));
}

Entry entry_of(const Checkpoint& checkpoint, const Variant& variant, std::size_t index,
               const Architecture& architecture) {
  const NameMap::Made& made = variant.made[index];
  std::vector<const Entry*> from;
  for (const std::size_t i : made.from) from.push_back(&checkpoint.entries[i]);
  return join_entries(made.name, from, made.join, architecture);
}

void remark(Pairing& pairing, const Checkpoint& checkpoint, const Variant& variant) {
  if (!variant.prefix.empty()) {
    pairing.remarks.push_back(
        fmt::format("{}: names are taken without '{}'", display(checkpoint.path), variant.prefix));
  }
  if (variant.mapped) {
    pairing.remarks.push_back(
        fmt::format("{}: names are mapped to those of the other", display(checkpoint.path)));
  }
}

}  // namespace

Pairing pair_up(Checkpoint first, Checkpoint second, const NameMap& map) {
  const std::vector<Variant> firsts = variants_of(first, map);
  const std::vector<Variant> seconds = variants_of(second, map);
  const Variant* a = &firsts[0];
  const Variant* b = &seconds[0];
  std::size_t best = common_keys(*a, *b);
  // Names that all match as they are need no second look.
  if (best < std::min(a->keys.size(), b->keys.size())) {
    for (const Variant& x : firsts) {
      for (const Variant& y : seconds) {
        const std::size_t common = common_keys(x, y);
        // A map takes several parameters for one, so fewer may match and yet be all: what counts is how few
        // are left over.
        const auto left_over = [](std::size_t matched, const Variant& v, const Variant& w) {
          return v.keys.size() + w.keys.size() - 2 * matched;
        };
        const bool better =
            (common > 0 && best == 0) || (common > 0 && left_over(common, x, y) < left_over(best, *a, *b));
        if (!better) continue;
        best = common;
        a = &x;
        b = &y;
      }
    }
  }
  Architecture architecture = first.architecture;
  if (!architecture.head_size && !architecture.heads && !architecture.query_groups) {
    architecture = second.architecture;
  }
  Pairing pairing;
  remark(pairing, first, *a);
  remark(pairing, second, *b);
  for (const auto& [key, index] : a->keys) {
    const auto found = b->keys.find(key);
    if (found == b->keys.end()) {
      pairing.only_first.push_back(a->made[index].name);
      continue;
    }
    pairing.pairs.push_back({a->made[index].name, entry_of(first, *a, index, architecture),
                             entry_of(second, *b, found->second, architecture)});
  }
  for (const auto& [key, index] : b->keys) {
    if (a->keys.find(key) == a->keys.end()) pairing.only_second.push_back(b->made[index].name);
  }
  std::sort(pairing.pairs.begin(), pairing.pairs.end(),
            [](const auto& x, const auto& y) { return in_model_order(x.name, y.name); });
  std::sort(pairing.only_first.begin(), pairing.only_first.end(), in_model_order);
  std::sort(pairing.only_second.begin(), pairing.only_second.end(), in_model_order);
  return pairing;
}

}  // namespace msprobe::checkpoint
