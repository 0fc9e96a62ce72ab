// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/overflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <variant>

#include "precheck/acc_check/summary.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::precheck {
namespace {

bool has_nonfinite(const TensorOutput& tensor) {
  const tensor::DTypeKind kind = tensor::info(tensor.dtype).kind;
  if (kind != tensor::DTypeKind::floating && kind != tensor::DTypeKind::complex) return false;
  const tensor::DType part = tensor::real_type(tensor.dtype);
  const std::size_t width = tensor::info(part).size;
  const std::uint64_t count = tensor.bytes.size() / width;
  constexpr std::size_t kBlock = 4096;  // elements: 32 KiB, which stay in the processor's first cache
  std::array<double, kBlock> values{};
  for (std::uint64_t at = 0; at < count; at += kBlock) {
    const auto block = std::span(values).first(std::min<std::uint64_t>(kBlock, count - at));
    tensor::to_double(part, tensor.bytes.subspan(at * width, block.size() * width), block);
    if (!std::ranges::all_of(block, [](double value) { return std::isfinite(value); })) return true;
  }
  return false;
}

/// Without a device both calls are made on the CPU: they show no difference between two kernels.
bool is_abnormal(CallOverflow where, const std::string& device) {
  return where != CallOverflow::both && device != "cpu";
}

std::string where_text(CallOverflow where, const std::string& device) {
  if (device == "cpu") return "on the CPU";
  if (where == CallOverflow::both) return "on the CPU and on " + display(device);
  return where == CallOverflow::device ? fmt::format("only on {}", display(device)) : "only on the CPU";
}

}  // namespace

bool overflows(const CallOutput& output) {
  if (const auto* list = std::get_if<CallOutput::List>(&output.value))
    return std::ranges::any_of(list->elements, overflows);
  if (const auto* tensor = std::get_if<TensorOutput>(&output.value)) return has_nonfinite(*tensor);
  const auto* scalar = std::get_if<ScalarOutput>(&output.value);
  return scalar != nullptr && scalar->kind == ScalarOutput::ScalarKind::real && !std::isfinite(scalar->real);
}

void OverflowTally::take(const OperationReport& result) {
  if (!result.overflow) {
    not_called_.push_back({result.name, result.reason});
    return;
  }
  ++called_;
  if (*result.overflow != CallOverflow::none) found_.push_back({result.name, *result.overflow});
}

std::string OverflowTally::text(const CheckSummary& summary, bool color) const {
  const auto abnormal = static_cast<std::size_t>(std::ranges::count_if(
      found_, [&](const NamedOverflow& one) { return is_abnormal(one.where, summary.device); }));
  std::string text = fmt::format("{} operations", human_count(called_));
  if (!summary.torch.empty())
    text += fmt::format(" on {}, PyTorch {}", display(summary.device), display(summary.torch));
  text += fmt::format(": {} overflow, {} of them abnormal, {} not called", human_count(found_.size()),
                      human_count(abnormal), human_count(not_called_.size()));
  if (summary.synthetic > 0) text += fmt::format("; {} with random data", human_count(summary.synthetic));
  for (const auto& [name, where] : found_) {
    const bool abnormal_one = is_abnormal(where, summary.device);
    const std::string word = report::paint(abnormal_one ? "abnormal" : "overflow",
                                           abnormal_one ? report::Color::red : report::Color::yellow, color);
    text += fmt::format("\n  {}  {}  {}", word, display(name), where_text(where, summary.device));
  }
  for (std::size_t i = 0; i < std::min(kShownCalls, not_called_.size()); ++i)
    text +=
        fmt::format("\n  not called  {}  {}", display(not_called_[i].name), display(not_called_[i].reason));
  if (not_called_.size() > kShownCalls)
    text += fmt::format("\n  and {} more", human_count(not_called_.size() - kShownCalls));
  return text;
}

}  // namespace msprobe::precheck
