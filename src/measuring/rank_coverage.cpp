// SPDX-License-Identifier: Apache-2.0
#include "measuring/rank_coverage.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "measuring/content_key.hpp"
#include "measuring/measures.hpp"
#include "measuring/settle_joins.hpp"
#include "measuring/statistics_difference.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;
using dump::ValueClass;
using pairing::kNone;
using pairing::Pair;

/// How a tensor counts.
enum class Fate : std::uint8_t { not_asked, compared, explained, alone, missed };

/// Numbers of both sides, of which one is finite at least: two infinities or NaN say nothing of the other
/// elements.
bool share_a_number(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    const NumberKind ours = kind_of_number(item.statistics[i], target.pool);
    const NumberKind theirs = kind_of_number(partner.statistics[i], golden.pool);
    if (ours != NumberKind::none && theirs != NumberKind::none &&
        (ours == NumberKind::finite || theirs == NumberKind::finite))
      return true;
  }
  return false;
}

/// The number of a tensor of one element may be there: NaN or an infinity on both sides is not equality.
bool share_a_checksum(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  if (!item.has_checksum || !partner.has_checksum) return false;
  const auto is_finite = [](std::string_view text) {
    return text.find_first_of("nN") == std::string_view::npos;  // no hexadecimal digit
  };
  return is_finite(target.text(item.checksum)) || is_finite(golden.text(partner.checksum));
}

/// Statistics that are equal do not show how far apart tensors of other checksums are.
bool differ_in_a_number(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    const dump::RecordedValue ours = item.statistics[i];
    const dump::RecordedValue theirs = partner.statistics[i];
    if (kind_of_number(ours, target.pool) == NumberKind::finite &&
        kind_of_number(theirs, golden.pool) == NumberKind::finite &&
        difference(ours, target.pool, theirs, golden.pool, {}).kind != DifferenceKind::zero)
      return true;
  }
  return false;
}

/// A mask of one infinity throughout.
bool is_infinite_mask(const Side& side, const Item& item) {
  const ValueClass largest = dump::classify(item.statistics[dump::kMax], side.pool).type;
  const ValueClass least = dump::classify(item.statistics[dump::kMin], side.pool).type;
  return largest == least && (largest == ValueClass::inf || largest == ValueClass::neg_inf);
}

bool is_nan(const Side& side, const Item& item) {
  return dump::classify(item.statistics[dump::kMax], side.pool).type == ValueClass::nan ||
         dump::classify(item.statistics[dump::kNorm], side.pool).type == ValueClass::nan;
}

bool is_recorded(const Item& item) {
  for (std::size_t i = 0; i < dump::kStatistics; ++i) {
    if (dump::is_recorded(item.statistics[i])) return true;
  }
  return false;
}

/// Recorders write no statistics of these types (docs/collector-details.md).
bool has_no_statistics(std::string_view dtype) {
  return dtype.find("complex") != std::string_view::npos || dtype.find("float8") != std::string_view::npos ||
         dtype.find("qint") != std::string_view::npos || dtype.find("quint") != std::string_view::npos;
}

std::uint64_t elements(const Side& side, const Item& item) {
  return elements_of(side.text(item.shape));
}

/// Were elements compared that are not all zero or NaN?
bool has_elements(const TensorMetrics& metrics) {
  return metrics.measure.norm_target > 0 || metrics.measure.norm_golden > 0;
}

/// Terms of a sum over merged ranks, whose statistics make up none of the sum's: its consumer has the sum.
bool is_term(const pairing::Joins* joins, std::uint32_t item) {
  return joins != nullptr && item < joins->items() && joins->is_split(item) && joins->decision(item).untold &&
         joins->decision(item).share == pairing::Share::sums;
}

/// `Module.up.Linear` of one of its calls, forward or backward.
std::string_view module_of(std::string_view entry) {
  const std::optional<dump::EntryName> name = dump::parse_entry_name(entry);
  return name ? name->base : entry;
}

class RankCoverage {
 public:
  RankCoverage(const MeasuredRank& rank, const std::vector<std::uint32_t>& golden_item, std::uint32_t entries)
      : rank_(rank), golden_item_(golden_item), entries_(entries) {
    target_.resize(rank.target.items.size(), Fate::not_asked);
    golden_.resize(rank.golden.items.size(), Fate::not_asked);
  }

  Coverage take() {
    for (const Pair& row : rank_.rows) {
      if (rank_.metrics.empty() || !row.has_target()) break;
      metrics_of_.resize(target_.size(), nullptr);
      metrics_of_[row.target] = &rank_.metrics[static_cast<std::size_t>(&row - rank_.rows.data())];
    }
    mark_pairs();
    settle_alone(rank_.target, target_, rank_.target_construct.get());
    settle_alone(rank_.golden, golden_, rank_.golden_construct.get());
    return std::move(out_);
  }

 private:
  void mark_pairs() {
    mark_alone(rank_.target, target_);
    mark_alone(rank_.golden, golden_);
    for (std::uint32_t i = 0; i < golden_item_.size(); ++i) {
      const std::uint32_t partner = golden_item_[i];
      if (rank_.target.items[i].api >= entries_) {
        target_[i] = Fate::not_asked;  // as --first asks
        if (partner != kNone) golden_[partner] = Fate::not_asked;
      } else if (partner != kNone && target_[i] == Fate::alone) {
        target_[i] = fate_of(i, partner);
        if (target_[i] != Fate::alone) golden_[partner] = target_[i];
        if (target_[i] == Fate::compared) ++out_.compared;
        if (target_[i] == Fate::explained) ++out_.explained;
      }
    }
  }

  static void mark_alone(const Side& side, std::vector<Fate>& fates) {
    for (std::uint32_t i = 0; i < side.items.size(); ++i) {
      if (side.items[i].is_tensor) fates[i] = Fate::alone;
    }
    // A fused item and its parts must not both count.
    for (const auto& [whole, parts] : side.merged) {
      for (const std::uint32_t part : parts) fates[part] = Fate::not_asked;
    }
  }

  /// How a tensor with a partner counts.
  Fate fate_of(std::uint32_t index, std::uint32_t golden_index) {
    const Item& item = rank_.target.items[index];
    const Item& partner = rank_.golden.items[golden_index];
    const auto missed = [&](std::string_view reason) {
      out_.miss(reason, rank_.target.name(item));
      return Fate::missed;
    };
    if (!partner.is_tensor) return Fate::alone;
    const auto is_hollow = [&] {
      return elements(rank_.target, item) == 0 && elements(rank_.golden, partner) == 0;
    };
    if (rank_.mode == Mode::md5) {
      if (is_hollow()) return Fate::explained;
      if (!share_a_checksum(rank_.target, item, rank_.golden, partner))
        return missed("there is no checksum on both sides");
      const bool equal = rank_.target.text(item.checksum) == rank_.golden.text(partner.checksum);
      return equal || differ_in_a_number(rank_.target, item, rank_.golden, partner)
                 ? Fate::compared
                 : missed("its checksums differ, which do not show by how much");
    }
    if (is_partly_known(rank_.target_joins.get(), index) ||
        is_partly_known(rank_.golden_joins.get(), golden_index))
      return missed("one of the merged ranks has no number of it");
    const TensorMetrics* metrics = metrics_of_.empty() ? nullptr : metrics_of_[index];
    // Other shapes, and NaN at other places, are a difference that was seen.
    if (metrics != nullptr && metrics->failed)
      return metrics->status == MetricStatus::unsupported
                 ? missed("the tensors could not be read or compared")
                 : Fate::compared;
    if (share_a_number(rank_.target, item, rank_.golden, partner)) return Fate::compared;
    if (metrics != nullptr && has_elements(*metrics)) return Fate::compared;
    if (is_hollow()) return Fate::explained;
    if (is_infinite_mask(rank_.target, item) && is_infinite_mask(rank_.golden, partner))
      return Fate::explained;
    if (is_term(rank_.target_joins.get(), index) || is_term(rank_.golden_joins.get(), golden_index))
      return Fate::explained;
    if (is_nan(rank_.target, item) && is_nan(rank_.golden, partner)) return missed("it is NaN in both runs");
    if (!is_recorded(item) && !is_recorded(partner) && has_no_statistics(rank_.target.text(item.dtype)) &&
        has_no_statistics(rank_.golden.text(partner.dtype)))
      return Fate::explained;
    return missed("no statistic is a number on both sides");
  }

  /// Decides how the tensors count that one side alone has.
  void settle_alone(const Side& side, std::vector<Fate>& fates, const dump::ConstructBeside* construct) {
    if (std::ranges::find(fates, Fate::alone) == fates.end()) return;
    explain_by_content(side, fates);
    const auto has = [&](const dump::Api& api, std::initializer_list<Fate> which) {
      for (const std::uint32_t i : api.items()) {
        if (std::ranges::find(which, fates[i]) != which.end()) return true;
      }
      return false;
    };
    std::vector<bool> compared(side.apis.size());
    for (std::size_t api = 0; api < side.apis.size(); ++api)
      compared[api] = has(side.apis[api], {Fate::compared});
    std::optional<std::unordered_set<std::string_view>> known;  // modules of which something was compared
    const auto known_modules = [&]() -> const std::unordered_set<std::string_view>& {
      if (known) return *known;
      known.emplace();
      for (std::size_t api = 0; api < side.apis.size(); ++api) {
        if (!has(side.apis[api], {Fate::compared, Fate::explained})) continue;
        known->insert(side.parsed_name(api).base);
        for (const std::string_view module : construct->table().around(side.text(side.apis[api].name)))
          known->insert(module_of(module));
      }
      return *known;
    };
    std::vector<std::string_view> reasons(side.apis.size());  // of tensors that nothing explains, by entry
    std::size_t begin = 0;  // of a stretch of calls that this side alone has
    const auto end_at = [&](std::size_t end) {
      const bool enclosed = begin > 0 && end < side.apis.size() && compared[begin - 1] && compared[end];
      for (std::size_t api = begin; api < end; ++api) {
        if (!enclosed) {
          reasons[api] = "only one side has it, and not between calls that were compared";
        } else if (construct != nullptr &&
                   is_in_unknown_module(side.apis[api], side, *construct, known_modules)) {
          reasons[api] = "only one side has its module";
        }
      }
    };
    for (std::size_t api = 0; api < side.apis.size(); ++api) {
      if (!compared[api] && !has(side.apis[api], {Fate::missed})) continue;
      end_at(api);
      if (!puts_out_compared(side, fates, side.apis[api]))
        reasons[api] = "only one side has it, and no output of its call was compared";
      begin = api + 1;
    }
    end_at(side.apis.size());
    for (std::uint32_t i = 0; i < fates.size(); ++i) {
      if (fates[i] != Fate::alone) continue;
      const Item& item = side.items[i];
      std::string_view reason = reasons[item.api];
      // An input shows in the outputs of its call, an output nowhere else.
      if (reason.empty() && compared[item.api] && item.state != dump::State::input)
        reason = "only one side has it, in a call that both have";
      if (reason.empty()) {
        ++out_.explained;
      } else {
        out_.miss(reason, side.name(item));
      }
    }
  }

  static bool puts_out_compared(const Side& side, const std::vector<Fate>& fates, const dump::Api& api) {
    for (const std::uint32_t i : api.items()) {
      if (fates[i] == Fate::compared && side.items[i].state != dump::State::input) return true;
    }
    return false;
  }

  static bool is_in_unknown_module(const dump::Api& api, const Side& side,
                                   const dump::ConstructBeside& construct, const auto& known) {
    const dump::EntryName name = side.parsed_name(api);
    if (name.is_module && !known().contains(name.base)) return true;
    return std::ranges::any_of(construct.table().around(side.text(api.name)), [&](std::string_view module) {
      return !dump::is_of_optimizer(module) && !known().contains(module_of(module));
    });
  }

  /// A content that was compared elsewhere is compared. Extremes alone do not show it: integers share them by
  /// chance.
  void explain_by_content(const Side& side, std::vector<Fate>& fates) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> alone;  // content and item
    std::unordered_set<double> norms;  // a look at them spares the content of nearly all others
    for (std::uint32_t i = 0; i < fates.size(); ++i) {
      if (fates[i] != Fate::alone) continue;
      const double norm = number_of(side, side.items[i], dump::kNorm);
      const std::uint64_t key = std::isfinite(norm) ? content_key(side, side.items[i]) : 0;
      if (key == 0) continue;
      alone.emplace_back(key, i);
      norms.insert(norm);
    }
    std::ranges::sort(alone);
    for (std::uint32_t i = 0; i < fates.size() && !alone.empty(); ++i) {
      if (fates[i] != Fate::compared || !norms.contains(number_of(side, side.items[i], dump::kNorm)))
        continue;
      const std::uint64_t key = content_key(side, side.items[i]);
      auto same = std::ranges::lower_bound(alone, std::pair(key, std::uint32_t{0}));
      for (; same != alone.end() && same->first == key; ++same) {
        if (fates[same->second] != Fate::alone) break;
        fates[same->second] = Fate::explained;
        ++out_.explained;
      }
    }
  }

  const MeasuredRank& rank_;
  const std::vector<std::uint32_t>& golden_item_;
  std::uint32_t entries_;
  std::vector<const TensorMetrics*> metrics_of_;  // by item of the target; empty without tensors
  std::vector<Fate> target_;                      // by item
  std::vector<Fate> golden_;
  Coverage out_;
};

}  // namespace

bool is_unknown(const MeasuredRank& rank, const Item& item, const Item& partner) {
  if (!item.is_tensor || !partner.is_tensor || elements(rank.target, item) == 0) return false;
  if (is_infinite_mask(rank.target, item) && is_infinite_mask(rank.golden, partner)) return false;
  return !share_a_number(rank.target, item, rank.golden, partner);
}

bool is_unknown(const MeasuredRank& rank, std::size_t row) {
  const Pair& pair = rank.rows[row];
  if (rank.mode == Mode::md5 || !pair.matched() || rank.is_left_out(pair)) return false;
  if (rank.target.header.task == "structure" && rank.golden.header.task == "structure") return false;
  if (!rank.metrics.empty() && has_elements(rank.metrics[row])) return false;
  return is_unknown(rank, rank.target_item(pair), rank.golden_item(pair));
}

Coverage coverage_of(const MeasuredRank& rank, const std::vector<std::uint32_t>& golden_item,
                     std::uint32_t entries) {
  return RankCoverage(rank, golden_item, entries).take();
}

std::vector<std::uint32_t> partners_in_rows(const MeasuredRank& rank) {
  std::vector<std::uint32_t> golden_item(rank.target.items.size(), kNone);
  for (const Pair& row : rank.rows) {
    if (row.matched()) golden_item[row.target] = row.golden;
  }
  return golden_item;
}

}  // namespace msprobe::measuring
