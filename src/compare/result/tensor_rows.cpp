// SPDX-License-Identifier: Apache-2.0
#include "compare/result/result.hpp"

#include <fmt/format.h>

#include <optional>
#include <unordered_map>
#include <vector>

#include "formats/joined_tensor.hpp"
#include "formats/tensor_file.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

const char kNoTargetFile[] = "NPU does not have data file.";
const char kNoGoldenFile[] = "Bench does not have data file.";
const char kUnmatchedMessage[] = "Bench api/module unmatched.";

/// Would there be data to expect? Plain arguments, null and empty tensors have none.
bool expects_data(const Side& side, const Item& item) {
  if (!item.is_tensor) return false;
  const std::string_view shape = side.text(item.shape);
  return !(shape.find("[0,") != std::string_view::npos || shape.find("[0]") != std::string_view::npos ||
           shape.find(" 0,") != std::string_view::npos || shape.find(" 0]") != std::string_view::npos);
}

TensorMetrics unsupported(std::string message, bool failed) {
  TensorMetrics metrics;
  metrics.messages.push_back(std::move(message));
  metrics.failed = failed;
  return metrics;
}

class RowMeter {
 public:
  explicit RowMeter(const RankResult& result) : result_(result) { find_groups(); }

  TensorMetrics measure(const Row& row) const {
    if (!row.has_target()) return unsupported(kUnmatchedMessage, false);
    const Item& item = result_.target_item(row);
    if (item.data_name == 0) return unsupported(kNoTargetFile, expects_data(result_.target, item));
    if (!row.matched()) return unsupported(kUnmatchedMessage, false);
    const Item& bench = result_.golden_item(row);
    if (bench.data_name == 0) return unsupported(kNoGoldenFile, expects_data(result_.golden, bench));
    const std::string target_name(result_.target.text(item.data_name));
    const std::string golden_name(result_.golden.text(bench.data_name));
    try {
      const formats::StoredTensor target = open_item(result_.target, row.pair.target);
      const formats::StoredTensor golden = open_item(result_.golden, row.pair.golden);
      return compare_tensors(target, golden, result_.traits.measure, valid_rows(item));
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      return unsupported(fmt::format("Dump file: {} or {} not found or read failed. ({})",
                                     display(target_name), display(golden_name), error.what()),
                         true);
    }
  }

 private:
  /// Outputs of grouped kernels are rubbish behind the last group; how long the groups are is an argument of
  /// the call.
  void find_groups() {
    const Side& side = result_.target;
    const auto has = [](std::string_view text, std::string_view part) {
      return text.find(part) != std::string_view::npos;
    };
    for (std::uint32_t index = 0; index < side.apis.size(); ++index) {
      const Api& api = side.apis[index];
      const std::string_view name = side.text(api.name);
      const std::string_view argument = has(name, "npu_dequant_swiglu_quant") ? ".group_index"
                                        : has(name, "npu_grouped_matmul")     ? ".group_list"
                                                                              : "";
      if (argument.empty()) continue;
      for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
        const Item& groups = side.items[i];
        if (groups.data_name == 0 || !side.name(groups).ends_with(argument)) continue;
        try {
          group_rows_[index] = sum_of_integers(open(side, groups));
        } catch (const Interrupted&) {
          throw;
        } catch (const Error& error) {
          log_warning(std::string("the groups of a grouped kernel cannot be read: ") + error.what());
        }
        break;
      }
    }
  }

  std::optional<std::int64_t> valid_rows(const Item& item) const {
    const auto found = group_rows_.find(item.api);
    if (found == group_rows_.end()) return std::nullopt;
    if (result_.target.name(item).find("output") == std::string_view::npos) return std::nullopt;
    return found->second;
  }

  /// Parts that one side has fused get the same input, their parameters stand one above the other, their
  /// outputs side by side.
  formats::StoredTensor open_item(const Side& side, std::uint32_t index) const {
    const auto merged = side.merged.find(index);
    if (merged == side.merged.end()) return open(side, side.items[index]);
    const std::string_view name = side.name(side.items[merged->second.front()]);
    const bool input = name.find(".input.") != std::string_view::npos;
    std::vector<formats::StoredTensor> parts;
    for (const std::uint32_t part : merged->second) {
      parts.push_back(open(side, side.items[part]));
      if (input) return parts.front();
    }
    const bool parameters = name.find(".parameters.") != std::string_view::npos;
    return formats::join_tensors(parts, parameters ? 0 : 1);
  }

  formats::StoredTensor open(const Side& side, const Item& item) const {
    if (result_.traits.judge.files_by_framework) {
      const bool pytorch = side.header.framework.empty() || side.header.framework == "pytorch";
      const std::string_view suffix = pytorch ? ".pt" : ".npy";
      if (const std::string_view name = side.text(item.data_name); !name.ends_with(suffix))
        throw FormatError(display(name), fmt::format("the name does not end in {}", suffix));
    }
    return open_data(side, item);
  }

  const RankResult& result_;
  std::unordered_map<std::uint32_t, std::int64_t> group_rows_;  // by entry of the target
};

void print_row(const RankResult& result, const Row& row, const TensorMetrics& metrics) {
  std::string line = display(result.name_of(row));
  if (metrics.status == MetricStatus::computed) {
    line += fmt::format(": Cosine {} MaxAbsErr {} MaxRelativeErr {} One Thousandth Err Ratio {}",
                        metrics.is_scalar ? "unsupported" : python_repr(metrics.value[kCosine]),
                        python_repr(metrics.value[kMaxAbs]), python_repr(metrics.value[kMaxRelative]),
                        metrics.is_scalar ? "unsupported" : python_repr(metrics.value[kOneThousandth]));
  }
  for (const std::string& message : metrics.messages) line += " " + message;
  log_info(line);
}

}  // namespace

void compare_tensor_rows(RankResult& result, bool print_rows, Progress* progress) {
  result.metrics.resize(result.rows.size());
  if (progress != nullptr) progress->begin("comparing tensors", result.rows.size(), "rows");
  const RowMeter meter(result);
  parallel_for(result.rows.size(), [&](std::size_t i) {
    result.metrics[i] = meter.measure(result.rows[i]);
    if (progress != nullptr) progress->advance();
  });
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    Row& row = result.rows[i];
    const TensorMetrics& metrics = result.metrics[i];
    if (print_rows) print_row(result, row, metrics);
    // Unmatched rows are explained by the judge.
    if (!result.traits.judge.tells_remarks || !row.matched()) continue;
    if (metrics.failed) row.findings.add(Rule::not_measured);
    if (metrics.messages.size() > (metrics.failed ? 1 : 0)) row.findings.add(Rule::remark);
  }
}

}  // namespace msprobe::compare
