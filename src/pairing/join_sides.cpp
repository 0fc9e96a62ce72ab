// SPDX-License-Identifier: Apache-2.0
#include "pairing/join_sides.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pairing {
namespace {

/// Entries of a rank by name.
class RankEntries {
 public:
  explicit RankEntries(const Side& side) : side_(side) {
    for (std::uint32_t i = 0; i < side.apis.size(); ++i) by_name_.emplace(side.text(side.apis[i].name), i);
  }

  const Api* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &side_.apis[found->second];
  }

 private:
  const Side& side_;
  std::unordered_map<std::string_view, std::uint32_t> by_name_;
};

class SideJoiner {
 public:
  explicit SideJoiner(std::vector<RankSide>&& ranks) : ranks_(std::move(ranks)) {
    std::vector<Joins::JoinedRank> names;
    for (const RankSide& rank : ranks_) {
      names.push_back({rank.number, rank.side.tensor_directory});
      entries_.emplace_back(rank.side);
    }
    joins_ = std::make_shared<Joins>(std::move(names));
  }

  JoinedSides join() {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> added;  // rank and entry
    std::unordered_set<std::string_view> known;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const Side& side = ranks_[rank].side;
      for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
        if (!known.insert(side.text(side.apis[api].name)).second) continue;
        add_parts(rank, side.apis[api]);
        if (rank > 0) added.emplace_back(rank, api);
      }
    }
    // Nothing refers to the texts of the first rank any more, so that its side can be moved.
    Side whole = std::move(ranks_.front().side);
    for (const auto& [rank, api] : added) append(whole, ranks_[rank].side, api);
    return {std::move(whole), std::move(joins_)};
  }

 private:
  void add_parts(std::uint32_t first, const Api& api) {
    const Side& side = ranks_[first].side;
    std::vector<std::pair<std::uint32_t, const Api*>> others;
    for (std::uint32_t rank = first + 1; rank < ranks_.size(); ++rank) {
      if (const Api* const other = entries_[rank].find(side.text(api.name))) others.emplace_back(rank, other);
    }
    for (std::uint32_t i = 0; i < api.count; ++i) {
      const Item& item = side.items[api.first + i];
      joins_->add_part(first, side, item);
      if (item.is_tensor) {
        for (const auto& [rank, other] : others) {
          const Item* const partner = item_of_entry(ranks_[rank].side, *other, side.name(item), i);
          if (partner != nullptr && partner->is_tensor) joins_->add_part(rank, ranks_[rank].side, *partner);
        }
      }
      joins_->end_item();
    }
  }

  static void append(Side& whole, const Side& from, std::uint32_t number) {
    constexpr std::size_t kMostItems = UINT32_MAX - 1;
    const Api& api = from.apis[number];
    if (whole.items.size() + api.count > kMostItems) throw FormatError(display(from.json), "too many items");
    Api copy = api;
    copy.name = whole.pool.add(from.text(api.name));
    copy.first = static_cast<std::uint32_t>(whole.items.size());
    for (const std::uint32_t i : api.items()) {
      const Item& item = from.items[i];
      Item& added = whole.items.emplace_back(item);
      added.api = static_cast<std::uint32_t>(whole.apis.size());
      added.name = whole.pool.add(from.name(item));
      added.dtype = whole.pool.intern(from.text(item.dtype));
      added.shape = whole.pool.intern(from.text(item.shape));
      added.checksum = whole.pool.intern(from.text(item.checksum));
      if (item.data_name != 0) added.data_name = whole.pool.add(from.text(item.data_name));
      for (std::size_t which = 0; which < dump::kStatistics; ++which) {
        const RecordedValue value = item.statistics[which];
        if (value.kind == ValueKind::text)
          added.statistics.set(which, RecordedValue::of_text(whole.pool.intern(from.text(value.text))));
      }
      if (const P2PNames* const transfer = from.transfer(item)) {
        whole.transfers[added.name] = {whole.pool.intern(from.text(transfer->operation)),
                                       whole.pool.intern(from.text(transfer->peer))};
      }
    }
    whole.apis.push_back(copy);
    if (const auto call = from.calls.find(from.text(api.name)); call != from.calls.end())
      whole.calls.insert(*call);
  }

  std::vector<RankSide> ranks_;
  std::vector<RankEntries> entries_;  // by rank
  std::shared_ptr<Joins> joins_;
};

}  // namespace

JoinedSides join_sides(std::vector<RankSide>&& ranks) {
  return SideJoiner(std::move(ranks)).join();
}

}  // namespace msprobe::pairing
