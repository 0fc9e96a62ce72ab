// SPDX-License-Identifier: Apache-2.0
#include "dump/side.hpp"
#include "verdict/result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measuring/sum_precision.hpp"

namespace msprobe::verdict {
namespace {

using pairing::Pair;
using pairing::RankPart;

std::string_view dtype_of_candidate(const RankResult& result, const Pair& row) {
  return result.golden.text(result.golden.items[row.candidate].dtype);
}

/// Names the first rank, and the first rank with other contents.
std::string words_of_copies(const RankResult& result, const Pair& row) {
  const auto words = [](const pairing::Joins* joins, std::uint32_t item) -> std::string {
    if (joins == nullptr || !joins->decision(item).differ) return {};
    const std::span<const RankPart> parts = joins->parts(item);
    const auto text = [&](const RankPart& part) {
      return dump::to_text(part.statistics[dump::kNorm], joins->pool);
    };
    for (std::size_t other = 1; other < parts.size(); ++other) {
      if (pairing::same_statistics(parts.front().statistics, parts[other].statistics)) continue;
      return fmt::format("Ranks {} and {} should hold equal values, but do not: norms {} and {}.",
                         joins->numbers(item).front(), joins->numbers(item)[other], text(parts.front()),
                         text(parts[other]));
    }
    return fmt::format("Ranks {} should hold equal elements, but do not.",
                       fmt::join(joins->numbers(item), ", "));
  };
  std::string text = row.has_target() ? words(result.target_joins.get(), row.target) : std::string();
  if (text.empty() && row.has_golden()) text = "Bench: " + words(result.golden_joins.get(), row.golden);
  return text;
}

/// Makes `Not compared: Mean, L2norm (only in NPU).`
std::string words_of_unknown(const RankResult& result, const Pair& row) {
  constexpr std::array<const char*, dump::kStatistics> kNames = {"Max", "Min", "Mean", "L2norm"};
  std::array<std::vector<const char*>, 2> alone;
  for (std::size_t which = 0; which < dump::kStatistics; ++which) {
    const bool ours = measuring::is_known(result.target, result.target_item(row), which);
    if (ours == measuring::is_known(result.golden, result.golden_item(row), which)) continue;
    alone[ours ? 0 : 1].push_back(kNames[which]);
  }
  std::vector<std::string> sides;
  for (std::size_t side = 0; side < alone.size(); ++side) {
    if (!alone[side].empty())
      sides.push_back(
          fmt::format("{} (only in {})", fmt::join(alone[side], ", "), side == 0 ? "NPU" : "Bench"));
  }
  return fmt::format("Not compared: {}.", fmt::join(sides, ", "));
}

std::string words_of_parts(const RankResult& result, const Pair& row) {
  const auto shapes = [](const dump::Side& side, const pairing::Joins* joins, std::uint32_t item) {
    if (joins == nullptr || !joins->is_split(item)) return std::string(side.text(side.items[item].shape));
    constexpr std::size_t kShown = 4;
    std::vector<std::string_view> texts;
    for (const RankPart& part : joins->parts(item).first(std::min(kShown, joins->parts(item).size())))
      texts.push_back(joins->pool.at(part.shape));
    return fmt::format("{}{} of {} ranks", fmt::join(texts, ", "),
                       joins->parts(item).size() > kShown ? ", ..." : "", joins->parts(item).size());
  };
  return fmt::format("The shapes cannot be merged to match: NPU {}, Bench {}.",
                     shapes(result.target, result.target_joins.get(), row.target),
                     shapes(result.golden, result.golden_joins.get(), row.golden));
}

}  // namespace

std::string words_of(RowRule rule, const RankResult& result, std::size_t index) {
  const Pair& row = result.rows[index];
  const pairing::Thresholds& limits = result.judgement.thresholds;
  switch (rule) {
    case RowRule::fuzzy_pair:
      return "Fuzzy matching data, the comparison accuracy may be affected.";
    case RowRule::aligned_pair:
      return "Paired by operation and position: Bench has it under another name.";
    case RowRule::content_pair:
      return "Paired by content: two code bases.";
    case RowRule::unknown:
      return words_of_unknown(result, row);
    case RowRule::not_measured:
      return result.metrics[index].messages.back();
    case RowRule::not_joined:
      return words_of_parts(result, row);
    case RowRule::copies_differ:
      return words_of_copies(result, row);
    case RowRule::target_missing:
      return "NPU api/module unmatched.";
    case RowRule::entry_missing:
      return "Bench api/module unmatched.";
    case RowRule::item_missing:
      return "Bench has this api/module, but not this item.";
    case RowRule::other_code:
      return "Other code: Bench has no tensor with these values.";
    case RowRule::dtype_unpaired:
      return fmt::format("Unmatched, because the dtypes cannot be compared (Bench: {}).",
                         dtype_of_candidate(result, row));
    case RowRule::non_finite:
      return "There is nan/inf/-inf in the maximum or minimum value of NPU.";
    case RowRule::ratio_drop:
      return fmt::format("The input/parameters of One Thousandth Err Ratio > {} while the output < {}.",
                         limits.ratio_input_above,
                         result.python.ratio_in_words.value_or(limits.ratio_output_below));
    case RowRule::norm_error:
      return fmt::format("The NormRelativeErr of output is greater than {}.", limits.norm_error_output_above);
    case RowRule::requires_grad:
      return "The Required_Grad of NPU and Bench are inconsistent";
    case RowRule::scalar_argument:
      return "The scalar parameters of NPU and Bench are inconsistent.";
    case RowRule::dtype:
      return "The dtype of NPU and Bench are inconsistent.";
    case RowRule::shape:
      return "The shape of NPU and Bench are inconsistent.";
    case RowRule::norm_growth:
      return fmt::format("The norm relative error of output is {} times that of input.",
                         limits.norm_error_growth_above);
    case RowRule::cosine_drop:
      return fmt::format("The input/parameters of Cosine > {}, and input/parameters - output > {}",
                         limits.cosine_input_above, limits.cosine_drop_above);
    case RowRule::checksum:
      return fmt::format("The {} value of NPU differs from that of the bench.",
                         result.judgement.by_xor ? "XOR" : "CRC-32");
    case RowRule::checksum_missing:
      return "The parameter of NPU does not match the bench.";
    case RowRule::left_out:
      return fmt::format("Not compared: --first stopped after {}.",
                         result.target.text(result.target.apis[result.entries_reached - 1].name));
    case RowRule::remark:  // has the words of the metrics
    case RowRule::no_checksum:
      break;
  }
  return "Neither side recorded a checksum.";
}

std::vector<std::string> messages_of(const RankResult& result, std::size_t index) {
  std::vector<std::string> messages;
  result.findings(index).each([&](RowRule rule) {
    if (rule == RowRule::remark) {
      const std::vector<std::string>& all = result.metrics[index].messages;
      messages.insert(messages.end(), all.begin(), all.end() - (result.metrics[index].failed ? 1 : 0));
      return;
    }
    std::string words = words_of(rule, result, index);
    const Verdict level = verdict_of(rule);
    messages.push_back(level == Verdict::pass ? std::move(words)
                                              : fmt::format("{}: {}", verdict_name(level), words));
  });
  return messages;
}

std::optional<RowRule> decisive_rule(const Findings& findings) {
  const Verdict verdict = findings.verdict();
  std::optional<RowRule> decisive;
  if (verdict == Verdict::pass) return decisive;
  findings.each([&](RowRule rule) {
    if (!decisive && verdict_of(rule) == verdict) decisive = rule;
  });
  return decisive;
}

}  // namespace msprobe::verdict
