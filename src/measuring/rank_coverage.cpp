// SPDX-License-Identifier: Apache-2.0
#include "measuring/rank_coverage.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "measuring/content_key.hpp"
#include "measuring/measures.hpp"
#include "pairing/alignment.hpp"
#include "support/json_scan.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;
using dump::ValueClass;
using pairing::kNone;

/// How a tensor counts.
enum class Fate : std::uint8_t { not_asked, compared, explained, alone, missed };

enum class NumberKind : std::uint8_t { none, finite, not_finite };

NumberKind kind_of_number(const dump::Value& value, const dump::TextPool& pool) {
  switch (value.kind) {
    case dump::ValueKind::boolean:
    case dump::ValueKind::integer:
      return NumberKind::finite;
    case dump::ValueKind::real:
      return std::isfinite(value.real) ? NumberKind::finite : NumberKind::not_finite;
    case dump::ValueKind::text:
      break;
    default:
      return NumberKind::none;
  }
  switch (dump::classify(value, pool).type) {
    case ValueClass::number:
      return NumberKind::finite;
    case ValueClass::nan:
    case ValueClass::inf:
    case ValueClass::neg_inf:
      return NumberKind::not_finite;
    default:
      return NumberKind::none;
  }
}

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

/// CRC-32 or XOR in hexadecimal digits; or a scalar's number, which the Python tool writes in place of its
/// XOR.
bool is_checksum(std::string_view text) {
  const std::string_view digits = text.starts_with("0x") ? text.substr(2) : text;
  if (!digits.empty() && std::ranges::all_of(digits, [](char c) { return is_hex(c); })) return true;
  const std::optional<double> number = parse_number(text);
  return number && std::isfinite(*number);
}

/// NaN in place of a checksum is compared with a checksum alone.
bool share_a_checksum(const Side& target, const Item& item, const Side& golden, const Item& partner) {
  if (!item.has_checksum || !partner.has_checksum) return false;
  const std::string_view ours = target.text(item.checksum);
  const std::string_view theirs = golden.text(partner.checksum);
  const auto is_nan = [](std::string_view text) { return parse_number(text) && !is_checksum(text); };
  return (is_checksum(ours) && (is_checksum(theirs) || is_nan(theirs))) ||
         (is_nan(ours) && is_checksum(theirs));
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

/// Recorders write no statistics of these types (docs/collector.md).
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
bool is_term(const Joins* joins, std::uint32_t item) {
  return joins != nullptr && item < joins->items() && joins->is_split(item) && joins->decision(item).untold;
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
    // Their parts stand for them, or they for their parts.
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
    if (rank_.mode == Mode::md5)
      return share_a_checksum(rank_.target, item, rank_.golden, partner)
                 ? Fate::compared
                 : missed("there is no checksum on both sides");
    const TensorMetrics* metrics = metrics_of_.empty() ? nullptr : metrics_of_[index];
    // Other shapes, and NaN at other places, are a difference that was seen.
    if (metrics != nullptr && metrics->failed)
      return metrics->status == MetricStatus::unsupported
                 ? missed("the tensors could not be read or compared")
                 : Fate::compared;
    if (share_a_number(rank_.target, item, rank_.golden, partner)) return Fate::compared;
    if (metrics != nullptr && has_elements(*metrics)) return Fate::compared;
    if (elements(rank_.target, item) == 0 && elements(rank_.golden, partner) == 0) return Fate::explained;
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
    std::unordered_set<std::string_view> known;  // modules of which something was compared, without calls
    std::vector<bool> compared(side.apis.size());
    for (std::size_t api = 0; api < side.apis.size(); ++api) {
      compared[api] = has(side.apis[api], {Fate::compared});
      if (!has(side.apis[api], {Fate::compared, Fate::explained})) continue;
      const std::string_view name = side.text(side.apis[api].name);
      known.insert(side.parsed_name(api).base);
      if (construct == nullptr) continue;
      for (const std::string_view module : construct->table().around(name)) known.insert(module_of(module));
    }
    std::vector<std::string_view> reasons(side.apis.size());  // of tensors that nothing explains, by entry
    std::size_t begin = 0;  // of a stretch of calls that this side alone has
    const auto end_at = [&](std::size_t end) {
      const bool enclosed = begin > 0 && end < side.apis.size() && compared[begin - 1] && compared[end];
      for (std::size_t api = begin; api < end; ++api) {
        if (!enclosed) {
          reasons[api] = "one side alone has it, and not between calls that were compared";
        } else if (is_in_unknown_module(side.apis[api], side, construct, known)) {
          reasons[api] = "one side alone has its module";
        }
      }
    };
    for (std::size_t api = 0; api < side.apis.size(); ++api) {
      if (!compared[api] && !has(side.apis[api], {Fate::missed})) continue;
      end_at(api);
      if (!puts_out_compared(side, fates, side.apis[api]))
        reasons[api] = "one side alone has it, and no output of its call was compared";
      begin = api + 1;
    }
    end_at(side.apis.size());
    for (std::uint32_t i = 0; i < fates.size(); ++i) {
      if (fates[i] != Fate::alone) continue;
      const Item& item = side.items[i];
      std::string_view reason = reasons[item.api];
      // An input shows in the outputs of its call, an output nowhere else.
      if (reason.empty() && compared[item.api] && item.state != dump::State::input)
        reason = "one side alone has it in a call that both have";
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
                                   const dump::ConstructBeside* construct,
                                   const std::unordered_set<std::string_view>& known) {
    if (construct == nullptr) return false;
    const dump::EntryName name = side.parsed_name(api);
    if (name.is_module && !known.contains(name.base)) return true;
    return std::ranges::any_of(construct->table().around(side.text(api.name)), [&](std::string_view module) {
      return !dump::is_of_optimizer(module) && !known.contains(module_of(module));
    });
  }

  /// A content that was compared elsewhere is compared. Extremes alone do not show it: integers share them by
  /// chance.
  void explain_by_content(const Side& side, std::vector<Fate>& fates) {
    std::unordered_set<std::uint64_t> known;
    for (std::uint32_t i = 0; i < fates.size(); ++i) {
      if (fates[i] == Fate::compared) known.insert(content_key(side, side.items[i]));
    }
    known.erase(0);
    for (std::uint32_t i = 0; i < fates.size(); ++i) {
      const Item& item = side.items[i];
      if (fates[i] != Fate::alone || !std::isfinite(number_of(side, item, dump::kNorm)) ||
          !known.contains(content_key(side, item)))
        continue;
      fates[i] = Fate::explained;
      ++out_.explained;
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
