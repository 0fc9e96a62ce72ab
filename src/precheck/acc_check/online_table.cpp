// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "formats/element_values.hpp"
#include "formats/stored_tensor.hpp"
#include "measuring/tensor_metrics.hpp"
#include "precheck/acc_check/narrow.hpp"
#include "report/writers.hpp"
#include "verdict/result.hpp"
#include "verdict/row_cells.hpp"

namespace msprobe::precheck {
namespace {

/// Bytes that another object keeps while they are compared.
class LentBytes final : public ByteSource {
 public:
  explicit LentBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size(), name_);
    std::ranges::copy(bytes_.subspan(offset, out.size()), out.begin());
  }
  const std::string& name() const override { return name_; }

 private:
  std::span<const std::byte> bytes_;
  std::string name_ = "an output";
};

formats::StoredTensor as_stored(const TensorOutput& tensor) {
  formats::StoredTensor result;
  result.dtype = tensor.dtype;
  result.shape.assign(tensor.shape.begin(), tensor.shape.end());
  result.strides = formats::row_major_strides(result.shape);
  result.storage = std::make_shared<const LentBytes>(tensor.bytes);
  return result;
}

/// The statistics of a tensor as the recorder writes them.
dump::StatisticValues recorded_statistics_of(const formats::StoredTensor& tensor) {
  using dump::RecordedValue;
  dump::StatisticValues values;  // null
  const tensor::Statistics found = formats::statistics_of(tensor);
  if (found.count == 0) return values;
  const tensor::DTypeKind kind = tensor::info(tensor.dtype).kind;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const bool undefined = found.nan > 0;
  if (kind == tensor::DTypeKind::boolean) {
    values.set(dump::kMax, RecordedValue::of(found.max != 0));
    values.set(dump::kMin, RecordedValue::of(found.min != 0));
    return values;
  }
  const bool integers = kind == tensor::DTypeKind::integer && tensor.dtype != tensor::DType::uint64;
  const RecordedValue max =
      integers ? RecordedValue::of(found.integer_max) : RecordedValue::of(undefined ? nan : found.max);
  values.set(dump::kMax, max);
  values.set(dump::kMin, integers ? RecordedValue::of(found.integer_min)
                                  : RecordedValue::of(undefined ? nan : found.min));
  if (tensor.shape.empty() && kind != tensor::DTypeKind::complex) {
    values.set(dump::kMean, max);
    values.set(dump::kNorm, max);
    return values;
  }
  const bool wide = kind == tensor::DTypeKind::integer || tensor.dtype == tensor::DType::float64 ||
                    tensor.dtype == tensor::DType::complex128;
  const auto rounded = [&](double value) {
    return RecordedValue::of(undefined ? nan : wide ? value : static_cast<double>(static_cast<float>(value)));
  };
  values.set(dump::kMean, rounded(found.mean()));
  if (kind != tensor::DTypeKind::complex) values.set(dump::kNorm, rounded(found.norm()));
  return values;
}

/// One side of one direction of a call, as a dump whose elements are in memory.
class SideOfCall {
 public:
  /// `places`: see CallOutputs.
  SideOfCall(const std::string& entry, const std::vector<std::size_t>& places, const CallOutput& output) {
    side_.header.task = "tensor";
    side_.header.framework = "pytorch";
    const auto* list = std::get_if<CallOutput::List>(&output.value);
    if (list == nullptr) {
      add(entry + ".output.0", output);
    } else {
      for (std::size_t i = 0; i < list->elements.size(); ++i)
        add(fmt::format("{}.output.{}", entry, places.empty() ? i : places[i]), list->elements[i]);
    }
    dump::Api api;
    api.name = side_.pool.add(entry);
    if (const auto parsed = dump::parse_entry_name(entry)) api.parts = dump::NameParts(entry, *parsed);
    api.count = static_cast<std::uint32_t>(side_.items.size());
    side_.apis.push_back(api);
  }

  /// The tensors by item.
  const std::vector<formats::StoredTensor>& tensors() const { return tensors_; }
  dump::Side take_side() { return std::move(side_); }

 private:
  void add(const std::string& name, const CallOutput& output) {
    if (const auto* list = std::get_if<CallOutput::List>(&output.value)) {
      for (std::size_t i = 0; i < list->elements.size(); ++i)
        add(fmt::format("{}.{}", name, i), list->elements[i]);
    }
    const auto* tensor = std::get_if<TensorOutput>(&output.value);
    if (tensor == nullptr) return;
    formats::StoredTensor elements = as_stored(*tensor);
    // The sender may have given a wrong number of bytes.
    const std::uint64_t width = tensor::info(tensor->dtype).size;
    if (static_cast<std::uint64_t>(elements.numel()) * width != tensor->bytes.size()) return;
    dump::Item item;
    item.name = side_.pool.add(name);
    item.dtype = side_.pool.intern(fmt::format("torch.{}", tensor::info(tensor->dtype).name));
    item.shape = side_.pool.intern(fmt::format("[{}]", fmt::join(tensor->shape, ", ")));
    item.state = dump::State::output;
    item.is_tensor = true;
    item.statistics = recorded_statistics_of(elements);
    side_.items.push_back(item);
    tensors_.push_back(std::move(elements));
  }

  dump::Side side_;
  std::vector<formats::StoredTensor> tensors_;
};

verdict::RankResult compare_sides(SideOfCall training, SideOfCall reference, const pairing::Rules& rules) {
  verdict::RankResult result;
  result.mode = measuring::Mode::tensor;
  result.target = training.take_side();
  result.golden = reference.take_side();
  const auto name_of = [&](const dump::Item& item) { return result.golden.name(item); };
  for (std::uint32_t i = 0; i < result.target.items.size(); ++i) {
    const auto partner =
        std::ranges::find(result.golden.items, result.target.name(result.target.items[i]), name_of);
    pairing::Pair row;
    row.target = i;
    row.reason = pairing::Unmatched::item_missing;
    measuring::TensorMetrics metrics;
    if (partner != result.golden.items.end()) {
      row.golden = static_cast<std::uint32_t>(partner - result.golden.items.begin());
      row.reason = pairing::Unmatched::no;
      metrics =
          measuring::compare_tensors(training.tensors()[i], reference.tensors()[row.golden], result.python);
    }
    result.rows.push_back(row);
    result.metrics.push_back(std::move(metrics));
  }
  result.judgement = verdict::judge(result, rules);
  return result;
}

}  // namespace

void OnlineTable::take(const CallOutputs& call, const CallOutput& training, CallOutput reference) {
  const std::string entry =
      call.operation + (call.direction == CallDirection::forward ? ".forward" : ".backward");
  std::vector<std::vector<std::byte>> storage;
  round_like(reference, training, storage);
  const verdict::RankResult result =
      compare_sides({entry, call.places, training}, {entry, call.places, reference}, rules_);
  const verdict::RowCells table(result);
  if (header_.empty()) {
    std::vector<report::Cell> titles;
    for (const verdict::Column& column : table.columns()) titles.emplace_back(report::Text{column.title});
    titles.emplace_back(report::Text{"Step"});
    header_ = report::csv_line(titles);
  }
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const verdict::Verdict verdict = result.verdict(i);
    const auto [known, is_new] = verdicts_.try_emplace(std::string(result.name_of(result.rows[i])), verdict);
    if (!is_new && std::exchange(known->second, verdict) == verdict) continue;
    table.row(i, cells, scratch);
    cells.emplace_back(static_cast<std::int64_t>(call.step));
    lines_ += report::csv_line(cells);
  }
}

std::string OnlineTable::take_lines() {
  return std::exchange(lines_, {});
}

}  // namespace msprobe::precheck
