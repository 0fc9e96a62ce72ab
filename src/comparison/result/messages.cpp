// SPDX-License-Identifier: Apache-2.0
#include "comparison/result/result.hpp"

#include <fmt/format.h>

namespace msprobe::compare {
namespace {

std::string_view dtype_of_candidate(const RankResult& result, const Row& row) {
  return result.golden.text(result.golden.items[row.pair.candidate].dtype);
}

}  // namespace

std::string words_of(Rule rule, const RankResult& result, std::size_t index) {
  const Row& row = result.rows[index];
  const Thresholds& limits = result.thresholds;
  switch (rule) {
    case Rule::fuzzy_pair:
      return "Fuzzy matching data, the comparison accuracy may be affected.";
    case Rule::aligned_pair:
      return "Paired by what it does and where: the Bench has it under another name.";
    case Rule::remark:
      return result.metrics[index].messages.front();
    case Rule::not_measured:
      return result.metrics[index].messages.back();
    case Rule::target_missing:
      return "NPU api/module unmatched.";
    case Rule::entry_missing:
      return "Bench api/module unmatched.";
    case Rule::item_missing:
      return "Bench has this api/module, but not this item.";
    case Rule::dtype_unpaired:
      return fmt::format("Unmatched, because the dtypes cannot be compared (Bench: {}).",
                         dtype_of_candidate(result, row));
    case Rule::non_finite:
      return "There is nan/inf/-inf in the maximum or minimum value of NPU.";
    case Rule::ratio_drop:
      return fmt::format("The input/parameters of One Thousandth Err Ratio > {} while the output < {}.",
                         limits.ratio_input_above,
                         result.traits.judge.ratio_in_words.value_or(limits.ratio_output_below));
    case Rule::norm_error:
      return fmt::format("The NormRelativeErr of output is greater than {}.", limits.norm_error_output_above);
    case Rule::requires_grad:
      return "The Required_Grad of NPU and Bench are inconsistent";
    case Rule::scalar_argument:
      return "The scalar parameters of NPU and Bench are inconsistent.";
    case Rule::dtype:
      return "The dtype of NPU and Bench are inconsistent.";
    case Rule::shape:
      return "The shape of NPU and Bench are inconsistent.";
    case Rule::norm_growth:
      return fmt::format("The norm relative error of output is {} times that of input.",
                         limits.norm_error_growth_above);
    case Rule::cosine_drop:
      return fmt::format("The input/parameters of Cosine > {}, and input/parameters - output > {}",
                         limits.cosine_input_above, limits.cosine_drop_above);
    case Rule::checksum:
      return "The CRC-32 value of NPU differs from that of the bench.";
    case Rule::checksum_missing:
      return "The parameter of NPU does not match the bench.";
    case Rule::left_out:
      return fmt::format("Not compared: --first stopped behind {}.",
                         result.target.text(result.target.apis[result.entries_reached - 1].name));
    case Rule::no_checksum:
      break;
  }
  return "Neither side recorded a checksum.";
}

std::vector<std::string> messages_of(const RankResult& result, std::size_t index) {
  std::vector<std::string> messages;
  result.rows[index].findings.each([&](Rule rule) {
    if (rule == Rule::remark) {
      const TensorMetrics& metrics = result.metrics[index];
      const std::size_t remarks = metrics.messages.size() - (metrics.failed ? 1 : 0);
      for (std::size_t i = 0; i < remarks; ++i) messages.push_back(metrics.messages[i]);
      return;
    }
    std::string words = words_of(rule, result, index);
    const Verdict level = verdict_of(rule);
    messages.push_back(level == Verdict::pass ? std::move(words)
                                              : fmt::format("{}: {}", verdict_name(level), words));
  });
  return messages;
}

std::optional<Rule> decisive_rule(const Row& row) {
  const Verdict verdict = row.verdict();
  std::optional<Rule> decisive;
  if (verdict == Verdict::pass) return decisive;
  row.findings.each([&](Rule rule) {
    if (!decisive && verdict_of(rule) == verdict) decisive = rule;
  });
  return decisive;
}

}  // namespace msprobe::compare
