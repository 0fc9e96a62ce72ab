// SPDX-License-Identifier: Apache-2.0
#include "compare/matching/matching.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "dump/names.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// Match keys of one side. Most keys are the row names themselves; only renumbered ones are made anew.
class Keys {
 public:
  explicit Keys(const Side& side) : side_(side), renumbered_(side.apis.size()) {
    std::unordered_map<std::string_view, std::uint64_t> next;
    for (std::size_t i = 0; i < side.apis.size(); ++i) {
      const std::string_view name = side.text(side.apis[i].name);
      const auto parsed = dump::parse_entry_name(name);
      if (!parsed || parsed->direction != dump::Direction::backward) continue;
      const std::string number = std::to_string(next[parsed->base]++);
      if (number == parsed->call) continue;
      std::string& key = renumbered_[i];
      key.assign(parsed->base);
      key += parsed->call_first ? "." + number + ".backward" : ".backward." + number;
    }
  }

  /// The key of an item; `buffer` is room for one that has to be made.
  std::string_view of(const Item& item, std::string& buffer) const {
    const std::string_view name = side_.name(item);
    const std::string& renumbered = renumbered_[item.api];
    if (renumbered.empty()) return name;
    const std::string_view api = side_.text(side_.apis[item.api].name);
    if (!name.starts_with(api)) return name;
    buffer.assign(renumbered);
    buffer += name.substr(api.size());
    return buffer;
  }

  std::string_view of_api(std::uint32_t api) const {
    return renumbered_[api].empty() ? side_.text(side_.apis[api].name) : std::string_view(renumbered_[api]);
  }

 private:
  const Side& side_;
  std::vector<std::string> renumbered_;
};

/// Golden items by key, chained where keys repeat.
class Index {
 public:
  Index(const Side& side, const Keys& keys) : side_(side), keys_(keys), next_(side.items.size(), kUnmatched) {
    buckets_.assign(std::max<std::size_t>(16, side.items.size() * 2), kUnmatched);
    // Backwards, so that every chain runs in file order.
    for (std::size_t i = side.items.size(); i-- > 0;) {
      std::uint32_t& head = buckets_[bucket(keys_.of(side.items[i], buffer_))];
      next_[i] = head;
      head = static_cast<std::uint32_t>(i);
    }
  }

  template <typename Visit>
  void each(std::string_view key, Visit&& visit) {
    for (std::uint32_t i = buckets_[bucket(key)]; i != kUnmatched; i = next_[i]) {
      if (keys_.of(side_.items[i], buffer_) == key) visit(i);
    }
  }

 private:
  std::size_t bucket(std::string_view key) const {
    return std::hash<std::string_view>{}(key) % buckets_.size();
  }

  const Side& side_;
  const Keys& keys_;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint32_t> next_;
  std::string buffer_;
};

}  // namespace

bool dtypes_match(std::string_view target, std::string_view golden, const Rules& rules) {
  if (target == golden) return true;
  return std::any_of(rules.dtype_groups.begin(), rules.dtype_groups.end(),
                     [&](const auto& group) { return group.contains(target) && group.contains(golden); });
}

Matching match_exact(const Side& target, const Side& golden, const Rules& rules) {
  const Keys target_keys(target);
  const Keys golden_keys(golden);
  Index index(golden, golden_keys);
  std::unordered_map<std::string_view, bool> golden_entries;
  for (std::uint32_t i = 0; i < golden.apis.size(); ++i) golden_entries.emplace(golden_keys.of_api(i), true);

  // Repeated names pair each with each, as the Python tool does; a hostile file must not make that quadratic.
  const std::size_t limit = 16 * (target.items.size() + golden.items.size()) + 300'000;
  std::vector<bool> used(golden.items.size(), false);
  Matching matching;
  matching.pairs.reserve(target.items.size());
  std::string buffer;
  for (std::uint32_t t = 0; t < target.items.size(); ++t) {
    const Item& item = target.items[t];
    const std::string_view target_dtype = target.text(item.dtype);
    bool found = false;
    index.each(target_keys.of(item, buffer), [&](std::uint32_t g) {
      found = true;
      if (dtypes_match(target_dtype, golden.text(golden.items[g].dtype), rules)) {
        used[g] = true;
        matching.pairs.push_back({t, g, Unmatched::no, kUnmatched});
      } else {
        matching.pairs.push_back({t, kUnmatched, Unmatched::dtype, g});
      }
      if (matching.pairs.size() > limit) {
        throw FormatError(display(golden.json),
                          "too many rows share one name: " + display(golden.name(golden.items[g])));
      }
    });
    if (!found) {
      const bool entry = golden_entries.contains(target_keys.of_api(item.api));
      matching.pairs.push_back(
          {t, kUnmatched, entry ? Unmatched::item_missing : Unmatched::entry_missing, kUnmatched});
    }
  }
  matching.golden_only = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), false));
  return matching;
}

}  // namespace msprobe::compare
