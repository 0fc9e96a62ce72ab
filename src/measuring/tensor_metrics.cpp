// SPDX-License-Identifier: Apache-2.0
#include "measuring/tensor_metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "formats/tensor_file.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/memory_gate.hpp"
#include "support/text.hpp"
#include "tensor/difference.hpp"
#include "tensor/element_feed.hpp"

namespace msprobe::measuring {
namespace {

using formats::ElementReader;
using formats::StoredTensor;
using tensor::DType;
using ElementKind = tensor::DTypeKind;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTiny = std::numeric_limits<double>::epsilon();

/// Elements a step: both sides' raw and converted pieces stay in the second-level cache.
constexpr std::size_t kElementsAtOnce = std::size_t{16} << 10;

const char kEmptyMessage[] = "This is empty data, can not compare.";
const char kShapeMessage[] = "Shape of NPU and bench tensor do not match. Skipped.";
const char kScalarMessage[] =
    "This is type of 0-d tensor, can not calculate 'Cosine', 'EucDist', 'One Thousandth Err Ratio' and "
    "'Five Thousandths Err Ratio'.";
const char kPositionMessage[] = "The position of inf or nan in NPU and bench Tensor do not match.";
const char kDtypeMessage[] = "Dtype of NPU and bench tensor do not match.";
const char kZeroTargetMessage[] =
    "Cannot compare by Cosine Similarity, All the data is Zero in npu dump data.";
const char kZeroGoldenMessage[] =
    "Cannot compare by Cosine Similarity, All the data is Zero in Bench dump data.";
const char kCosineNanMessage[] = "Cannot compare by Cosine Similarity, the dump data has NaN.";
const char kAbsNanMessage[] = "Cannot compare by MaxAbsError, the data contains nan/inf/-inf in dump data.";
const char kRelativeNanMessage[] =
    "Cannot compare by MaxRelativeError, the data contains nan/inf/-inf in dump data.";
const char kComplexMessage[] = "Complex tensors are compared as pairs of real numbers.";

tensor::Work work_type(DType target, DType golden, const PythonRules& python) {
  const tensor::Work work = tensor::work_of(target, golden);
  const bool integers = work == tensor::Work::signed_integer || work == tensor::Work::unsigned_integer;
  return python.integers_as_double && integers ? tensor::Work::real : work;
}

/// The type NumPy holds the loaded data in: narrow floats that NumPy lacks are widened to float32.
DType numpy_dtype(DType dtype) {
  return tensor::info(dtype).kind == ElementKind::floating && tensor::info(dtype).numpy.empty()
             ? DType::float32
             : dtype;
}

std::vector<std::int64_t> squeezed(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> out;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](std::int64_t n) { return n != 1; });
  return out;
}

template <typename T>
using Feed = tensor::ElementFeed<T, ElementReader>;

struct ElementPass {
  bool real_part_only = false;
  std::int64_t valid_elements =
      std::numeric_limits<std::int64_t>::max();  // of the target; later rows count as 0
};

template <typename T>
tensor::Difference run(const StoredTensor& target, const StoredTensor& golden, const ElementPass& pass) {
  const tensor::Parts parts = pass.real_part_only ? tensor::Parts::real_only : tensor::Parts::as_stored;
  Feed<T> feed_target(target, parts);
  Feed<T> feed_golden(golden, parts);
  std::int64_t done = 0;
  tensor::DifferenceAccumulator accumulator;
  while (feed_target.remaining() > 0) {
    check_interrupt();
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(feed_target.remaining(), kElementsAtOnce));
    const std::span<T> t = feed_target.next(count);
    done += static_cast<std::int64_t>(count);
    if (done > pass.valid_elements) {
      const auto rubbish =
          static_cast<std::size_t>(std::min(done - pass.valid_elements, static_cast<std::int64_t>(count)));
      const std::size_t numbers = t.size() / count;  // two of a complex element
      std::fill(t.end() - static_cast<std::ptrdiff_t>(rubbish * numbers), t.end(), T{0});
    }
    const std::span<T> g = feed_golden.next(count);
    accumulator.add(t, g);
  }
  return accumulator.finish();
}

tensor::Difference run(const StoredTensor& target, const StoredTensor& golden, tensor::Work work,
                       const ElementPass& pass) {
  return tensor::with_type(work, [&]<typename T>(T) { return run<T>(target, golden, pass); });
}

double cosine(const tensor::Difference& difference, std::vector<std::string>& messages) {
  const double target_norm = std::sqrt(difference.squares_target);
  const double golden_norm = std::sqrt(difference.squares_golden);
  if (target_norm <= kTiny && golden_norm <= kTiny) return 1.0;
  if (target_norm <= kTiny) {
    messages.emplace_back(kZeroTargetMessage);
    return kNan;
  }
  if (golden_norm <= kTiny) {
    messages.emplace_back(kZeroGoldenMessage);
    return kNan;
  }
  const double value = difference.dot / (target_norm * golden_norm);
  if (std::isnan(value)) {
    messages.emplace_back(kCosineNanMessage);
    return kNan;
  }
  const double rounded = round_12(value);
  return rounded > 0.9999 ? std::strtod(fmt::format("{:.6f}", rounded).c_str(), nullptr) : rounded;
}

double rounded_or_message(double value, const char* message, std::vector<std::string>& messages) {
  if (!std::isnan(value)) return round_12(value);
  messages.emplace_back(message);
  return kNan;
}

void fill_errors(TensorMetrics& metrics, double max_abs, double max_relative) {
  metrics.value[kMaxAbs] = rounded_or_message(max_abs, kAbsNanMessage, metrics.messages);
  metrics.value[kMaxRelative] = rounded_or_message(max_relative, kRelativeNanMessage, metrics.messages);
}

std::string position_message(const tensor::Difference& difference, const PythonRules& python) {
  if (python.positions_without_count) return kPositionMessage;
  std::string message = kPositionMessage;
  if (difference.nonfinite_mismatch > 0) {
    message += fmt::format(" ({} of {} elements)", difference.nonfinite_mismatch, difference.count);
  }
  if (difference.infinity_sign_mismatch > 0) {
    message += fmt::format(" ({} infinities of opposite sign)", difference.infinity_sign_mismatch);
  }
  return message;
}

/// |N - B| of 0-d tensors as NumPy computes it: in the type of the arrays, where small integers wrap around.
double python_scalar_abs(DType dtype, double n, double b) {
  const auto wrap = [&]<typename T>(T) {
    const auto difference = static_cast<T>(static_cast<std::uint64_t>(static_cast<std::int64_t>(n)) -
                                           static_cast<std::uint64_t>(static_cast<std::int64_t>(b)));
    if constexpr (std::is_signed_v<T>) {
      if (difference == std::numeric_limits<T>::min()) return static_cast<double>(difference);
      return static_cast<double>(difference < 0 ? -difference : difference);
    } else {
      return static_cast<double>(difference);
    }
  };
  switch (dtype) {
    case DType::uint8:
      return wrap(std::uint8_t{});
    case DType::int8:
      return wrap(std::int8_t{});
    case DType::uint16:
      return wrap(std::uint16_t{});
    case DType::int16:
      return wrap(std::int16_t{});
    case DType::uint32:
      return wrap(std::uint32_t{});
    case DType::int32:
      return wrap(std::int32_t{});
    case DType::float64:
    case DType::boolean:
    case DType::int64:
    case DType::uint64:
      return std::fabs(n - b);
    default:
      return std::fabs(static_cast<double>(static_cast<float>(n) - static_cast<float>(b)));
  }
}

/// 0-d tensors as the Python tool judges them (docs/rules.md, "Tensors without dimensions").
void compare_scalars_like_python(TensorMetrics& metrics, const StoredTensor& target,
                                 const StoredTensor& golden) {
  Feed<double> target_feed(target);
  Feed<double> golden_feed(golden);
  const std::span<const double> n = target_feed.next(1);
  const std::span<const double> b = golden_feed.next(1);
  double max_abs = 0;
  if (n.size() == 2 && b.size() == 2) {
    const auto re = static_cast<float>(n[0] - b[0]);
    const auto im = static_cast<float>(n[1] - b[1]);
    max_abs = target.dtype == DType::complex128 ? std::hypot(n[0] - b[0], n[1] - b[1])
                                                : static_cast<double>(std::hypot(re, im));
  } else if (target.dtype == golden.dtype) {
    max_abs = python_scalar_abs(target.dtype, n[0], b[0]);
  } else {
    max_abs = std::fabs(n[0] - b[0]);
  }
  auto n32 = static_cast<float>(n[0]);
  auto b32 = static_cast<float>(b[0]);
  if (b32 == 0) {
    n32 += std::numeric_limits<float>::epsilon();
    b32 += std::numeric_limits<float>::epsilon();
  }
  const float relative = std::fabs((n32 - b32) / b32);
  fill_errors(metrics, max_abs, static_cast<double>(relative));
}

MemoryGate& gather_gate() {
  static MemoryGate gate(2 * ElementReader::kMaxGather);
  return gate;
}

}  // namespace

double round_12(double value) {
  if (!std::isfinite(value)) return value;
  return std::strtod(fmt::format("{:.12f}", value).c_str(), nullptr);
}

std::string behind_valid_length(std::int64_t rows) {
  return fmt::format(
      "NPU elements from [{}] on were taken as 0: they are beyond the valid length of the call.", rows);
}

formats::StoredTensor open_data(const dump::Side& side, const dump::Item& item) {
  return formats::open_tensor(
      open_file_beneath(side.tensor_directory, std::string(side.text(item.data_name))));
}

std::int64_t sum_of_integers(const StoredTensor& tensor) {
  const ElementKind kind = tensor::info(tensor.dtype).kind;
  if (kind != ElementKind::integer && kind != ElementKind::boolean) {
    throw FormatError(display(tensor.storage->name()), "integers expected");
  }
  Feed<double> feed(tensor);
  double sum = 0;
  while (feed.remaining() > 0) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(feed.remaining(), kElementsAtOnce));
    for (const double value : feed.next(count)) sum += value;
  }
  constexpr double kMost = 9e18;
  return static_cast<std::int64_t>(std::clamp(sum, -kMost, kMost));
}

TensorMetrics compare_tensors(const StoredTensor& target, const StoredTensor& golden,
                              const PythonRules& python, std::optional<std::int64_t> valid_rows) {
  TensorMetrics metrics;
  const std::vector<std::int64_t> shape = squeezed(target.shape);
  if (target.numel() == 0) {
    metrics.messages.emplace_back(kEmptyMessage);
    metrics.failed = golden.numel() != 0;
    return metrics;
  }
  if (shape != squeezed(golden.shape)) {
    metrics.status = MetricStatus::shape_unmatched;
    metrics.messages.emplace_back(kShapeMessage);
    metrics.failed = true;
    return metrics;
  }
  const MemoryGate::Pass pass(gather_gate(),
                              ElementReader::memory_need(target) + ElementReader::memory_need(golden));
  metrics.is_scalar = shape.empty();
  metrics.status = MetricStatus::computed;
  if (metrics.is_scalar) metrics.messages.emplace_back(kScalarMessage);
  if (metrics.is_scalar && python.scalars_in_own_type) {
    compare_scalars_like_python(metrics, target, golden);
    return metrics;
  }
  const bool target_complex = tensor::info(target.dtype).kind == ElementKind::complex;
  const bool golden_complex = tensor::info(golden.dtype).kind == ElementKind::complex;
  // One complex side only: just the real parts have a counterpart.
  const bool real_part_only = python.real_parts_only || target_complex != golden_complex;
  if (target_complex && !real_part_only) metrics.messages.emplace_back(kComplexMessage);
  ElementPass elements;
  elements.real_part_only = real_part_only;
  if (valid_rows && !shape.empty()) {
    const std::int64_t rows = std::clamp<std::int64_t>(*valid_rows, 0, shape[0]);
    elements.valid_elements = target.numel() / shape[0] * rows;
    if (rows < shape[0]) metrics.messages.push_back(behind_valid_length(rows));
  }
  const tensor::Difference difference =
      run(target, golden, work_type(target.dtype, golden.dtype, python), elements);
  metrics.measure = measuring::measure(difference);
  if (difference.nonfinite_mismatch > 0 ||
      (!python.infinities_without_sign && difference.infinity_sign_mismatch > 0)) {
    metrics.status = MetricStatus::not_applicable;
    metrics.messages.push_back(position_message(difference, python));
    metrics.failed = true;
    return metrics;
  }
  if (numpy_dtype(target.dtype) != numpy_dtype(golden.dtype)) metrics.messages.emplace_back(kDtypeMessage);
  if (!metrics.is_scalar) {
    const auto count = static_cast<double>(difference.count);
    metrics.value[kCosine] = cosine(difference, metrics.messages);
    metrics.value[kEucDist] = std::sqrt(difference.squares_difference);
    metrics.value[kOneThousandth] = round_12(static_cast<double>(difference.below_one_thousandth) / count);
    metrics.value[kFiveThousandths] =
        round_12(static_cast<double>(difference.below_five_thousandths) / count);
  }
  fill_errors(metrics, difference.max_abs, difference.max_relative);
  return metrics;
}

}  // namespace msprobe::measuring
