// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/result_members.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "report/table.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

using measuring::DifferenceKind;
using measuring::Mode;
using measuring::ValueDifference;
using pairing::Pair;
using verdict::RankResult;

std::string difference_text(const ValueDifference& difference, bool python_texts) {
  std::string text = report::plain_text(measuring::difference_cell(difference));
  const bool infinite = difference.kind == DifferenceKind::number && std::isinf(difference.difference);
  return python_texts && infinite ? text + '\t' : text;
}

}  // namespace

TextMembers result_members(const RankResult& result, std::size_t index, bool python_texts) {
  const Pair& row = result.rows[index];
  // The Python tool has a blank if the golden side has no item.
  const bool blank = python_texts && !row.matched();
  TextMembers out;
  const auto put = [&](std::string_view key, std::string text) { out.emplace_back(key, std::move(text)); };
  if (result.mode == Mode::statistics) {
    std::array<ValueDifference, dump::kStatistics> differences;
    for (std::size_t i = 0; i < differences.size(); ++i) {
      differences[i] = result.difference(row, i);
      put(kDifferenceNames[i], blank ? " " : difference_text(differences[i], python_texts));
    }
    for (std::size_t i = 0; i < differences.size(); ++i) {
      put(kRelativeNames[i],
          blank ? " " : short_decimal(report::plain_text(measuring::relative_cell(differences[i]))));
    }
  }
  for (std::size_t i = 0; result.mode == Mode::tensor && i < kMetricNames.size(); ++i) {
    put(kMetricNames[i], blank ? " " : report::plain_text(verdict::metric_cell(result.metrics[index], i)));
  }
  const std::string verdict(verdict::verdict_name(result.verdict(index)));
  if (result.mode == Mode::md5) put("Result", verdict);
  const bool same_grad =
      row.matched() && result.target_item(row).requires_grad == result.golden_item(row).requires_grad;
  put("Requires_grad Consistent", same_grad ? "True" : "False");
  if (result.mode != Mode::md5) put("Result", verdict);
  JsonWriter messages;
  messages.value(verdict::messages_of(result, index));
  put("Err_message", messages.take());
  return out;
}

}  // namespace msprobe::graph
