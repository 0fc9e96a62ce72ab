// SPDX-License-Identifier: Apache-2.0
#include "pairing/join.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <unordered_set>

#include "dump/names.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::pairing {
namespace {

std::uint32_t hash_of(std::string_view text) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(text));
}

/// The texts by which rows are found, and their hashes. The texts of both sides are most of the work, so that
/// several threads compute them.
class Texts {
 public:
  /// `keys` nullptr: the names as they stand.
  Texts(const Side& side, const EntryKeys* keys) : side_(side), keys_(keys), hashes_(side.items.size()) {
    parallel_blocks_with<std::string>(
        hashes_.size(), [&](std::size_t i, std::string& buffer) { hashes_[i] = hash_of(of(i, buffer)); });
  }
  std::string_view of(std::size_t item, std::string& buffer) const {
    return keys_ == nullptr ? side_.name(side_.items[item]) : keys_->of(side_.items[item], buffer);
  }
  std::size_t size() const { return hashes_.size(); }
  std::uint32_t hash(std::size_t item) const { return hashes_[item]; }

 private:
  const Side& side_;
  const EntryKeys* keys_;
  std::vector<std::uint32_t> hashes_;
};

/// Golden items by a text of theirs, chained where it repeats.
class Index {
 public:
  Index(const Side& side, const EntryKeys* keys) : texts_(side, keys), next_(side.items.size(), kUnmatched) {
    buckets_.assign(std::bit_ceil(2 * side.items.size() + 1), kUnmatched);
    // Backwards, so that every chain runs in file order.
    for (std::size_t i = texts_.size(); i-- > 0;) {
      std::uint32_t& head = buckets_[bucket(texts_.hash(i))];
      next_[i] = head;
      head = static_cast<std::uint32_t>(i);
    }
  }

  template <typename Visit>
  void each(std::string_view key, std::uint32_t hash, Visit&& visit) {
    for (std::uint32_t i = buckets_[bucket(hash)]; i != kUnmatched; i = next_[i]) {
      if (texts_.hash(i) == hash && texts_.of(i, buffer_) == key) visit(i);
    }
  }

 private:
  std::size_t bucket(std::uint32_t hash) const { return hash & (buckets_.size() - 1); }

  Texts texts_;
  std::vector<std::uint32_t> buckets_;  // as many as a power of two
  std::vector<std::uint32_t> next_;
  std::string buffer_;
};

/// `Float32` of `mindspore.float32`, as MSAdapter lets MindSpore write its types.
std::string_view as_mindspore(std::string_view dtype) {
  if (!dtype.starts_with("mindspore.")) return dtype;
  const auto known = tensor::dtype_from_mindspore(dtype);
  return known ? tensor::info(*known).mindspore : dtype;
}

bool in_one_set(const std::vector<std::set<std::string, std::less<>>>& sets, std::string_view a,
                std::string_view b) {
  return std::ranges::any_of(sets, [&](const auto& set) { return set.contains(a) && set.contains(b); });
}

}  // namespace

EntryKeys::EntryKeys(const Side& side, const Rename& rename, bool renumber) : side_(side) {
  std::unordered_map<std::string, std::uint64_t> next;
  for (std::size_t i = 0; i < side.apis.size(); ++i) {
    const std::string_view name = side.text(side.apis[i].name);
    std::string key;
    if (rename) key = rename(name);
    if (renumber) {
      const auto parsed = dump::parse_entry_name(rename ? key : name);
      if (parsed && parsed->direction == dump::Direction::backward) {
        const std::string base(parsed->base);
        const std::string number = std::to_string(next[base]++);
        if (number != parsed->call)
          key = base + (parsed->call_first ? "." + number + ".backward" : ".backward." + number);
      }
    }
    if (key.empty() || key == name) continue;
    changed_.resize(side.apis.size());
    changed_[i] = std::move(key);
  }
}

const std::string& EntryKeys::changed(std::uint32_t api) const {
  static const std::string kUnchanged;
  return changed_.empty() ? kUnchanged : changed_[api];
}

std::string_view EntryKeys::of(const Item& item, std::string& buffer) const {
  const std::string_view name = side_.name(item);
  const std::string& entry_key = changed(item.api);
  if (entry_key.empty()) return name;
  const std::string_view api = side_.text(side_.apis[item.api].name);
  if (!name.starts_with(api)) return name;
  buffer.assign(entry_key);
  buffer += name.substr(api.size());
  return buffer;
}

std::string_view EntryKeys::of_entry(std::uint32_t api) const {
  const std::string& key = changed(api);
  return key.empty() ? side_.text(side_.apis[api].name) : std::string_view(key);
}

Matching finish_pairs(const Side& target, const Side& golden, std::vector<Pair> pairs, const Rules& rules,
                      DtypeCheck check) {
  std::vector<bool> used(golden.items.size(), false);
  for (Pair& pair : pairs) {
    if (pair.golden == kUnmatched) continue;
    if (dtypes_match(target.text(target.items[pair.target].dtype),
                     golden.text(golden.items[pair.golden].dtype), rules, check)) {
      used[pair.golden] = true;
    } else {
      pair = {pair.target, kUnmatched, Unmatched::dtype, pair.golden};
    }
  }
  Matching matching;
  matching.pairs = std::move(pairs);
  matching.golden_only = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), false));
  return matching;
}

Matching join(const Side& target, const TargetKeys& target_keys, const EntryKeys& golden_keys,
              const Rules& rules, DtypeCheck check) {
  const Side& golden = golden_keys.side();
  Index by_key(golden, &golden_keys);
  std::optional<Index> by_name;
  std::unordered_set<std::string_view> golden_entries;

  // Repeated names pair each with each, as the Python tool does; a hostile file must not make that quadratic.
  const std::size_t limit = 16 * (target.items.size() + golden.items.size()) + 300'000;
  std::vector<std::uint32_t> hashes(target.items.size());
  parallel_blocks_with<std::string>(hashes.size(), [&](std::size_t t, std::string& key) {
    hashes[t] = hash_of(target_keys.of(target.items[t], key).text);
  });
  std::vector<Pair> pairs;
  pairs.reserve(target.items.size());
  std::string buffer;
  for (std::uint32_t t = 0; t < target.items.size(); ++t) {
    const Item& item = target.items[t];
    const RowKey key = target_keys.of(item, buffer);
    bool found = false;
    const auto add = [&](std::uint32_t g) {
      found = true;
      pairs.push_back({t, g, Unmatched::no, kUnmatched});
      if (pairs.size() > limit) {
        throw FormatError(display(golden.json),
                          "too many rows share one name: " + display(golden.name(golden.items[g])));
      }
    };
    if (key.among == RowKey::Among::keys) {
      by_key.each(key.text, hashes[t], add);
    } else if (key.among == RowKey::Among::names) {
      if (!by_name) by_name.emplace(golden, nullptr);
      by_name->each(key.text, hashes[t], add);
    }
    if (!found) {
      if (golden_entries
              .empty()) {  // made for the first row that needs it; most comparisons have no such row
        for (std::uint32_t i = 0; i < golden.apis.size(); ++i) golden_entries.insert(golden_keys.of_entry(i));
      }
      const bool entry = golden_entries.contains(target_keys.of_entry(item.api));
      pairs.push_back(
          {t, kUnmatched, entry ? Unmatched::item_missing : Unmatched::entry_missing, kUnmatched});
    }
  }
  return finish_pairs(target, golden, std::move(pairs), rules, check);
}

bool dtypes_match(std::string_view target, std::string_view golden, const Rules& rules, DtypeCheck check) {
  if (check == DtypeCheck::none) return true;
  target = as_mindspore(target);
  golden = as_mindspore(golden);
  if (target == golden) return true;
  if (in_one_set(rules.dtype_groups, target, golden)) return true;
  const auto of_torch = [](std::string_view dtype) { return dtype.starts_with("torch."); };
  return check == DtypeCheck::canonical && of_torch(target) != of_torch(golden) &&
         in_one_set(rules.dtype_classes, target, golden);
}

}  // namespace msprobe::pairing
