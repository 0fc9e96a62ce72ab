// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/match.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "checkpoint/forms.hpp"
#include "checkpoint/names.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// One way to read the names of a side.
struct Variant {
  Heads heads;
  bool mapped = false;
  std::vector<NameMap::Made> made;
  std::unordered_map<std::string, std::size_t> keys;  // index into `made`
};

/// The names without the heads. A name that would then equal another one keeps its heads.
std::vector<std::string> names_without(const std::vector<CheckpointEntry>& entries, const Heads& heads) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const CheckpointEntry& entry : entries)
    names.push_back(without_heads(without_wrappers(entry.parameter.name), heads));
  std::unordered_set<std::string> taken;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (names[i] == entries[i].parameter.name) taken.insert(names[i]);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& whole = entries[i].parameter.name;
    if (names[i] != whole && !taken.insert(names[i]).second) names[i] = whole;
  }
  return names;
}

std::vector<Heads> heads_of(const Checkpoint& checkpoint) {
  if (checkpoint.megatron_names) return {{}};
  return possible_heads(names_without(checkpoint.entries, {}));
}

/// Returns nothing if the map takes none of the names.
std::optional<Variant> make_variant(const Checkpoint& checkpoint, const Heads& heads, const NameMap* map) {
  const std::vector<std::string> names = names_without(checkpoint.entries, heads);
  Variant variant;
  variant.heads = heads;
  variant.mapped = map != nullptr;
  if (map != nullptr) {
    variant.made = map->apply(names);
    const bool same = std::ranges::all_of(variant.made, [&](const NameMap::Made& made) {
      return made.from.size() == 1 && made.name == names[made.from[0]];
    });
    if (same) return {};
  } else {
    for (std::size_t i = 0; i < names.size(); ++i)
      variant.made.push_back({names[i], {i}, ParameterJoin::none});
  }
  for (std::size_t i = 0; i < variant.made.size(); ++i) {
    // Two names that mean the same stay apart, so that neither is lost; the later one then matches nothing.
    std::string key = expert_key(variant.made[i].name);
    while (!variant.keys.emplace(key, i).second) key += '\n';
  }
  return variant;
}

/// A variant to be weighed. It keeps hashes only, because a checkpoint may have a hundred thousand names.
struct WeighedVariant {
  Heads heads;
  bool mapped = false;
  std::vector<std::size_t> hashes;  // of the keys, sorted
};

std::vector<WeighedVariant> candidates_of(const Checkpoint& checkpoint, const NameMap& map) {
  std::vector<WeighedVariant> candidates;
  for (const Heads& heads : heads_of(checkpoint)) {
    for (const bool mapped : {false, true}) {
      const auto variant = make_variant(checkpoint, heads, mapped ? &map : nullptr);
      if (!variant) continue;
      WeighedVariant& candidate = candidates.emplace_back(WeighedVariant{heads, mapped, {}});
      for (const auto& [key, index] : variant->keys)
        candidate.hashes.push_back(std::hash<std::string>{}(key));
      std::ranges::sort(candidate.hashes);
    }
  }
  return candidates;
}

std::size_t common_keys(const WeighedVariant& a, const WeighedVariant& b) {
  std::vector<std::size_t> common;
  std::ranges::set_intersection(a.hashes, b.hashes, std::back_inserter(common));
  return common.size();
}

/// Chooses how to read the names of both sides: the way that leaves the fewest names without a partner. (A
/// map makes one parameter of several, so the number of matches is no measure.)
std::pair<Variant, Variant> best_variants(const Checkpoint& first, const Checkpoint& second,
                                          const NameMap& map) {
  std::optional<Variant> a = make_variant(first, {}, nullptr);
  std::optional<Variant> b = make_variant(second, {}, nullptr);
  const auto known = [&](const auto& key) { return b->keys.find(key.first) != b->keys.end(); };
  const auto matched = static_cast<std::size_t>(std::ranges::count_if(a->keys, known));
  // If all names match as they are, no other variant can be better.
  if (matched == std::min(a->keys.size(), b->keys.size())) return {std::move(*a), std::move(*b)};
  a.reset();
  b.reset();
  const std::vector<WeighedVariant> firsts = candidates_of(first, map);
  const std::vector<WeighedVariant> seconds = candidates_of(second, map);
  const WeighedVariant* x = &firsts[0];
  const WeighedVariant* y = &seconds[0];
  std::size_t common = common_keys(*x, *y);
  for (const WeighedVariant& one : firsts) {
    for (const WeighedVariant& other : seconds) {
      // Parameters in another form on both sides are paired afterwards, so mapping both is not tried.
      if (one.mapped && other.mapped) continue;
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
  return {*make_variant(first, x->heads, x->mapped ? &map : nullptr),
          *make_variant(second, y->heads, y->mapped ? &map : nullptr)};
}

void remark(Pairing& pairing, const Checkpoint& checkpoint, const Variant& variant) {
  if (!variant.heads.empty()) {
    pairing.remarks.push_back(fmt::format("{}: names are matched without the prefix '{}.'",
                                          display(checkpoint.path), fmt::join(variant.heads, ".")));
  }
  if (variant.mapped) {
    pairing.remarks.push_back(
        fmt::format("{}: names are mapped to those of the other checkpoint", display(checkpoint.path)));
  }
}

/// One side while its parameters find their partners.
struct MatchedSide {
  const Checkpoint& checkpoint;
  const Variant& variant;
  const Architecture& architecture;
  std::vector<bool> paired;         // of `made`: whole, or in parts
  std::vector<std::string> pieces;  // names of parts without a partner, of a whole that has some

  CheckpointEntry entry(std::size_t index) const {
    const NameMap::Made& made = variant.made[index];
    std::vector<const CheckpointEntry*> from;
    for (const std::size_t i : made.from) from.push_back(&checkpoint.entries[i]);
    return join_entries(made.name, from, made.join, architecture);
  }
};

void add_pair(Pairing& pairing, MatchedSide& first, std::size_t i, MatchedSide& second, std::size_t k) {
  first.paired[i] = true;
  second.paired[k] = true;
  pairing.pairs.push_back({first.variant.made[i].name, first.entry(i), second.entry(k), {}});
}

/// The ending that other versions of a library use for the same parameter.
std::string other_ending(const std::string& name) {
  struct Ending {
    std::string_view from;
    std::string_view to;
  };
  constexpr std::array kEndings = {
      // TensorFlow's names in layers, and PyTorch's.
      Ending{".gamma", ".weight"},
      Ending{".beta", ".bias"},
      // Names by torch.nn.utils.parametrizations, and by the functions that it replaced.
      Ending{".parametrizations.weight.original0", ".weight_g"},
      Ending{".parametrizations.weight.original1", ".weight_v"},
      Ending{".parametrizations.weight.original", ".weight_orig"},
  };
  for (const Ending& ending : kEndings) {
    if (name.ends_with(ending.from))
      return name.substr(0, name.size() - ending.from.size()) + std::string(ending.to);
  }
  return name;
}

/// Pairs names that differ by such an ending alone.
void pair_other_endings(MatchedSide& first, MatchedSide& second, Pairing& pairing) {
  std::unordered_map<std::string, std::size_t> left;
  for (std::size_t i = 0; i < second.variant.made.size(); ++i) {
    if (second.paired[i]) continue;
    const auto [at, is_new] = left.emplace(other_ending(second.variant.made[i].name), i);
    if (!is_new) at->second = second.variant.made.size();  // two of one name: neither is meant
  }
  std::size_t count = 0;
  std::string example;
  for (std::size_t i = 0; i < first.variant.made.size() && !left.empty(); ++i) {
    if (first.paired[i]) continue;
    const std::string& name = first.variant.made[i].name;
    const auto found = left.find(other_ending(name));
    if (found == left.end() || found->second == second.variant.made.size()) continue;
    if (second.variant.made[found->second].name == name) continue;  // the forms differ, not the names
    const std::size_t k = found->second;
    left.erase(found);
    if (count++ == 0)
      example = fmt::format("{} with {}", display(name), display(second.variant.made[k].name));
    add_pair(pairing, first, i, second, k);
  }
  if (count == 0) return;
  pairing.remarks.push_back(
      fmt::format("{} renamed: {} compared with the name that another version has for it, for example {}; a "
                  "loader that does not know both names leaves such a parameter as initialised",
                  count == 1 ? "one parameter is" : human_count(count) + " parameters are",
                  count == 1 ? "it is" : "each is", example));
}

std::vector<LooseParameter> loose_of(const MatchedSide& side) {
  std::vector<LooseParameter> all;
  for (std::size_t i = 0; i < side.variant.made.size(); ++i) {
    if (!side.paired[i]) all.push_back({side.entry(i), {i}});
  }
  return all;
}

void note_pieces(MatchedSide& side, const std::vector<LooseParameter>& left) {
  for (const LooseParameter& loose : left) {
    const bool any =
        std::ranges::any_of(loose.sources, [&](std::size_t source) { return side.paired[source]; });
    if (any) side.pieces.push_back(loose.entry.parameter.name);
  }
}

/// Pairs parameters that are left on both sides and may be the same in another form.
void pair_other_forms(MatchedSide& first, MatchedSide& second, const NameMap& map, Pairing& pairing) {
  FormPairs found =
      pair_forms({loose_of(first), !first.checkpoint.megatron_names},
                 {loose_of(second), !second.checkpoint.megatron_names}, map, first.architecture);
  for (FormPairs::FormPair& pair : found.pairs) {
    for (const std::size_t source : pair.first.sources) first.paired[source] = true;
    for (const std::size_t source : pair.second.sources) second.paired[source] = true;
    pairing.pairs.push_back(
        {std::move(pair.name), std::move(pair.first.entry), std::move(pair.second.entry)});
  }
  note_pieces(first, found.first);
  note_pieces(second, found.second);
  if (!found.pairs.empty()) {
    pairing.remarks.push_back(fmt::format(
        "{} are laid out differently and were joined or split",
        found.pairs.size() == 1 ? "one parameter" : fmt::format("{} parameters", found.pairs.size())));
  }
}

/// Sorts the parameters that only one side has. Names for a tensor that is compared under another name are
/// not missing on the other side.
void sort_out(Pairing& pairing, const MatchedSide& side, bool is_second) {
  const Checkpoint& checkpoint = side.checkpoint;
  std::unordered_map<std::size_t, std::string> compared;           // groups of names for one tensor
  std::unordered_map<std::string, const CheckpointEntry*> biases;  // of the masked language models' heads
  const CheckpointEntry* vocabulary = nullptr;
  for (std::size_t i = 0; i < side.variant.made.size(); ++i) {
    const NameMap::Made& made = side.variant.made[i];
    if (!side.paired[i] || made.from.size() != 1) continue;
    const CheckpointEntry& entry = checkpoint.entries[made.from[0]];
    if (entry.tied != 0) compared.emplace(entry.tied, made.name);
    if (!entry.problem.empty()) continue;
    if (vocabulary == nullptr && is_vocabulary(made.name)) vocabulary = &entry;
    if (made.name.ends_with(".bias")) biases.emplace(made.name, &entry);
  }
  // BERT and similar models keep the bias of the head twice: as `bias`, and as that of `decoder`.
  const auto original_of = [&](const std::string& name) -> const CheckpointEntry* {
    constexpr std::string_view kCopy = ".decoder.bias";
    if (is_vocabulary(name)) return vocabulary;
    if (!name.ends_with(kCopy)) return nullptr;
    const auto found = biases.find(name.substr(0, name.size() - kCopy.size()) + ".bias");
    return found == biases.end() ? nullptr : found->second;
  };
  std::vector<std::string>& only = is_second ? pairing.only_second : pairing.only_first;
  only = side.pieces;
  for (std::size_t i = 0; i < side.variant.made.size(); ++i) {
    if (side.paired[i]) continue;
    const NameMap::Made& made = side.variant.made[i];
    const CheckpointEntry& entry = checkpoint.entries[made.from[0]];
    const bool single = made.from.size() == 1;
    if (single && !entry.problem.empty()) {
      pairing.unreadable.push_back({made.name, entry.problem});
      continue;
    }
    const auto twin = single && entry.tied != 0 ? compared.find(entry.tied) : compared.end();
    if (twin != compared.end()) {
      pairing.tied.push_back({made.name, twin->second, is_second, {}, {}});
      continue;
    }
    const CheckpointEntry* original = single ? original_of(made.name) : nullptr;
    const bool alike = original != nullptr && entry.parameter.shape == original->parameter.shape &&
                       entry.parameter.dtype == original->parameter.dtype;
    if (alike) {
      pairing.tied.push_back(
          {made.name, original->parameter.name, is_second, entry.parameter, original->parameter});
    } else {
      only.push_back(made.name);
      if (!single) continue;
      Parameter& lone = (is_second ? pairing.lone_second : pairing.lone_first).emplace_back(entry.parameter);
      lone.name = made.name;
    }
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
  pairing.map_applies = make_variant(first, a.heads, &map) || make_variant(second, b.heads, &map);
  remark(pairing, first, a);
  remark(pairing, second, b);
  MatchedSide one{first, a, architecture, std::vector<bool>(a.made.size()), {}};
  MatchedSide other{second, b, architecture, std::vector<bool>(b.made.size()), {}};
  for (const auto& [key, index] : a.keys) {
    const auto found = b.keys.find(key);
    if (found == b.keys.end()) continue;
    const auto& ours = a.made[index].from;
    const auto& theirs = b.made[found->second].from;
    if (ours.size() == 1 && theirs.size() == 1 &&
        are_stacks_of_two_forms(first.entries[ours[0]], second.entries[theirs[0]])) {
      continue;
    }
    add_pair(pairing, one, index, other, found->second);
  }
  pair_other_endings(one, other, pairing);
  pair_other_forms(one, other, map, pairing);
  sort_out(pairing, one, false);
  sort_out(pairing, other, true);
  std::ranges::sort(pairing.pairs,
                    [](const auto& x, const auto& y) { return in_model_order(x.name, y.name); });
  std::ranges::sort(pairing.tied, [](const Pairing::Tied& x, const Pairing::Tied& y) {
    if (x.is_second != y.is_second) return y.is_second;
    return in_model_order(x.name, y.name);
  });
  std::ranges::sort(pairing.only_first, in_model_order);
  std::ranges::sort(pairing.only_second, in_model_order);
  return pairing;
}

}  // namespace msprobe::checkpoint
