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

class MemberWriter {
 public:
  MemberWriter(const RankResult& result, std::size_t index, bool python_texts)
      : result_(result), row_(result.rows[index]), index_(index), python_texts_(python_texts) {}

  TextMembers write() {
    if (result_.mode == Mode::statistics) put_differences();
    if (result_.mode == Mode::tensor) put_metrics();
    if (result_.mode == Mode::md5) {
      put_verdict();
      put_same_grad();
    } else {
      put_same_grad();
      put_verdict();
    }
    JsonWriter messages;
    messages.value(verdict::messages_of(result_, index_));
    put("Err_message", messages.take());
    return std::move(out_);
  }

 private:
  /// The Python tool has a blank if the golden side has no item.
  bool is_blank() const { return python_texts_ && !row_.matched(); }

  void put_differences() {
    std::array<ValueDifference, dump::kStatistics> differences;
    for (std::size_t i = 0; i < differences.size(); ++i) differences[i] = result_.difference(row_, i);
    for (std::size_t i = 0; i < differences.size(); ++i)
      put(kDifferenceNames[i], is_blank() ? " " : difference_text(differences[i]));
    for (std::size_t i = 0; i < differences.size(); ++i) {
      put(kRelativeNames[i],
          is_blank() ? " " : short_decimal(report::plain_text(measuring::relative_cell(differences[i]))));
    }
  }

  std::string difference_text(const ValueDifference& difference) const {
    std::string text = report::plain_text(measuring::difference_cell(difference));
    const bool infinite = difference.kind == DifferenceKind::number && std::isinf(difference.difference);
    return python_texts_ && infinite ? text + '\t' : text;
  }

  void put_metrics() {
    for (std::size_t i = 0; i < kMetricNames.size(); ++i)
      put(kMetricNames[i],
          is_blank() ? " " : report::plain_text(verdict::metric_cell(result_.metrics[index_], i)));
  }

  void put_same_grad() {
    const bool same =
        row_.matched() && result_.target_item(row_).requires_grad == result_.golden_item(row_).requires_grad;
    put("Requires_grad Consistent", same ? "True" : "False");
  }

  void put_verdict() { put("Result", std::string(verdict::verdict_name(result_.verdict(index_)))); }

  void put(std::string_view key, std::string text) { out_.emplace_back(key, std::move(text)); }

  const RankResult& result_;
  const Pair& row_;
  std::size_t index_;
  bool python_texts_;
  TextMembers out_;
};

}  // namespace

TextMembers result_members(const RankResult& result, std::size_t row, bool python_texts) {
  return MemberWriter(result, row, python_texts).write();
}

}  // namespace msprobe::graph
