// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

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

std::vector<std::string_view> prefixes_of(const Checkpoint& checkpoint) {
  std::vector<std::string_view> prefixes = {""};
  if (checkpoint.megatron_names) return prefixes;
  for (const std::string_view prefix : kPrefixes) {
    const bool occurs =
        std::any_of(checkpoint.entries.begin(), checkpoint.entries.end(),
                    [&](const Entry& entry) { return entry.parameter.name.starts_with(prefix); });
    if (occurs) prefixes.push_back(prefix);
  }
  return prefixes;
}

/// Nothing if the map takes none of the names.
std::optional<Variant> make_variant(const Checkpoint& checkpoint, std::string_view prefix,
                                    const NameMap* map) {
  const std::vector<std::string> names = without_prefix(checkpoint.entries, prefix);
  Variant variant;
  variant.prefix = prefix;
  variant.mapped = map != nullptr;
  if (map != nullptr) {
    variant.made = map->apply(names);
    const bool same = std::all_of(variant.made.begin(), variant.made.end(), [&](const NameMap::Made& made) {
      return made.from.size() == 1 && made.name == names[made.from[0]];
    });
    if (same) return {};
  } else {
    for (std::size_t i = 0; i < names.size(); ++i) variant.made.push_back({names[i], {i}, Join::none});
  }
  for (std::size_t i = 0; i < variant.made.size(); ++i) {
    // Two that mean the same are kept apart, so that neither is lost; the later one then matches nothing.
    std::string key = expert_key(variant.made[i].name);
    while (!variant.keys.emplace(key, i).second) key += '\n';
  }
  return variant;
}

/// A variant to be weighed: of a checkpoint of a hundred thousand names not all variants are kept at once.
struct Candidate {
  std::string_view prefix;
  bool mapped = false;
  std::vector<std::size_t> hashes;  // of the keys, sorted
};

std::vector<Candidate> candidates_of(const Checkpoint& checkpoint, const NameMap& map) {
  std::vector<Candidate> candidates;
  for (const std::string_view prefix : prefixes_of(checkpoint)) {
    for (const bool mapped : {false, true}) {
      const auto variant = make_variant(checkpoint, prefix, mapped ? &map : nullptr);
      if (!variant) continue;
      Candidate& candidate = candidates.emplace_back(Candidate{prefix, mapped, {}});
      for (const auto& [key, index] : variant->keys)
        candidate.hashes.push_back(std::hash<std::string>{}(key));
      std::sort(candidate.hashes.begin(), candidate.hashes.end());
    }
  }
  return candidates;
}

std::size_t common_keys(const Candidate& a, const Candidate& b) {
  std::size_t common = 0;
  for (auto x = a.hashes.begin(), y = b.hashes.begin(); x != a.hashes.end() && y != b.hashes.end();) {
    if (*x == *y) {
      ++common;
      ++x;
      ++y;
    } else if (*x < *y) {
      ++x;
    } else {
      ++y;
    }
  }
  return common;
}

/// How to read the names of both sides: what leaves the fewest of them over. (A map makes one parameter of
/// several, so the number that match tells nothing.)
std::pair<Variant, Variant> best_variants(const Checkpoint& first, const Checkpoint& second,
                                          const NameMap& map) {
  std::optional<Variant> a = make_variant(first, "", nullptr);
  std::optional<Variant> b = make_variant(second, "", nullptr);
  const auto known = [&](const auto& key) { return b->keys.find(key.first) != b->keys.end(); };
  const auto matched = static_cast<std::size_t>(std::count_if(a->keys.begin(), a->keys.end(), known));
  // Names that all match as they are need no second look.
  if (matched == std::min(a->keys.size(), b->keys.size())) return {std::move(*a), std::move(*b)};
  a.reset();
  b.reset();
  const std::vector<Candidate> firsts = candidates_of(first, map);
  const std::vector<Candidate> seconds = candidates_of(second, map);
  const Candidate* x = &firsts[0];
  const Candidate* y = &seconds[0];
  std::size_t common = common_keys(*x, *y);
  for (const Candidate& one : firsts) {
    for (const Candidate& other : seconds) {
      const std::size_t count = common_keys(one, other);
      const std::size_t left = one.hashes.size() + other.hashes.size() - 2 * count;
      const bool better =
          count > 0 && (common == 0 || left < x->hashes.size() + y->hashes.size() - 2 * common);
      if (!better) continue;
      common = count;
      x = &one;
      y = &other;
    }
  }
  return {*make_variant(first, x->prefix, x->mapped ? &map : nullptr),
          *make_variant(second, y->prefix, y->mapped ? &map : nullptr)};
}

Entry made_entry(const Checkpoint& checkpoint, const Variant& variant, std::size_t index,
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
  const auto [a, b] = best_variants(first, second, map);
  Architecture architecture = first.architecture;
  if (!architecture.head_size && !architecture.heads && !architecture.query_groups) {
    architecture = second.architecture;
  }
  Pairing pairing;
  remark(pairing, first, a);
  remark(pairing, second, b);
  for (const auto& [key, index] : a.keys) {
    const auto found = b.keys.find(key);
    if (found == b.keys.end()) {
      pairing.only_first.push_back(a.made[index].name);
      continue;
    }
    pairing.pairs.push_back({a.made[index].name, made_entry(first, a, index, architecture),
                             made_entry(second, b, found->second, architecture)});
  }
  for (const auto& [key, index] : b.keys) {
    if (a.keys.find(key) == a.keys.end()) pairing.only_second.push_back(b.made[index].name);
  }
  std::sort(pairing.pairs.begin(), pairing.pairs.end(),
            [](const auto& x, const auto& y) { return in_model_order(x.name, y.name); });
  std::sort(pairing.only_first.begin(), pairing.only_first.end(), in_model_order);
  std::sort(pairing.only_second.begin(), pairing.only_second.end(), in_model_order);
  return pairing;
}

}  // namespace msprobe::checkpoint
