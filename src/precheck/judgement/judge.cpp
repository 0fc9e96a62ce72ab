// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dump/operations.hpp"
#include "precheck/judgement/float_figures.hpp"
#include "precheck/judgement/integers.hpp"
#include "precheck/judgement/output.hpp"
#include "precheck/judgement/verdict.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {
namespace {

using tensor::DType;
using tensor::DTypeKind;

FigureValue real(double value) {
  return {FigureValue::Form::real, value, {}};
}
FigureValue integer(double value) {
  return {FigureValue::Form::integer, value, {}};
}
/// A share of a whole. For an empty whole, the Python tool writes the integer 0.
FigureValue share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? integer(0) : real(static_cast<double>(part) / static_cast<double>(whole));
}

std::string torch_name(DType dtype) {
  return "torch." + std::string(tensor::info(dtype).name);
}
/// NumPy's name of a type; NumPy has no bfloat16.
std::string numpy_name(DType dtype) {
  return dtype == DType::bfloat16 ? "float32" : std::string(tensor::info(dtype).name);
}

std::string tuple_text(const std::vector<std::uint64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

bool is_float8(DType dtype) {
  return tensor::info(dtype).kind == DTypeKind::floating && tensor::info(dtype).size == 1;
}

bool is_empty(const TensorOutput& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

/// Whether a tensor has as many bytes as its shape needs.
bool is_whole(const TensorOutput& tensor) {
  if (is_empty(tensor)) return tensor.bytes.empty();
  std::uint64_t bytes = tensor::info(tensor.dtype).size;
  for (const std::uint64_t size : tensor.shape) {
    if (bytes > tensor.bytes.size() / size) return false;
    bytes *= size;
  }
  return bytes == tensor.bytes.size();
}

class OutputJudge {
 public:
  OutputJudge(const ApiName& api, CallDirection direction, const Standards& standards, Selection selection,
              const InputFacts& inputs)
      : prefix_(api.text() +
                (direction == CallDirection::forward ? ".forward.output." : ".backward.output.")),
        operation_(api.name),
        standards_(standards),
        limits_(standards.limits()),
        newer_(selection == Selection::release_26),
        inputs_(inputs) {}

  CallJudgement judge(const CallOutput& reference, const CallOutput& device) {
    if (dump::is_listed("drops", operation_)) {
      judge_dropout(reference, device);
    } else {
      const auto* references = std::get_if<CallOutput::List>(&reference.value);
      const auto* devices = std::get_if<CallOutput::List>(&device.value);
      if (references != nullptr && devices != nullptr && references->tuple == devices->tuple) {
        judge_list(references->elements, devices->elements);
      } else {
        add(judge_one(reference, device));
      }
    }
    conclude();
    return std::move(judgement_);
  }

 private:
  void add(OutputRow row) {
    row.name = prefix_ + std::to_string(judgement_.rows.size());
    judgement_.rows.push_back(std::move(row));
  }

  /// Sets the result: the Python tool takes the status of the last bad row, msprobe the verdict of the worst
  /// one.
  void conclude() {
    PythonStatus last = PythonStatus::pass;
    for (const OutputRow& row : judgement_.rows) {
      if (!row.only_ours && (row.status == PythonStatus::error || row.status == PythonStatus::warning))
        last = row.status;
      if (row.verdict <= judgement_.verdict) continue;
      judgement_.verdict = row.verdict;
      judgement_.reason = row.reason;
      if (!row.reason.empty() && judgement_.rows.size() > 1)
        judgement_.reason = fmt::format("output {}: {}", &row - judgement_.rows.data(), row.reason);
    }
    if (judgement_.status == PythonStatus::none) judgement_.status = last;
  }

  static OutputRow only_ours(PrecheckVerdict verdict, std::string reason) {
    OutputRow row;
    row.only_ours = true;
    row.verdict = verdict;
    row.reason = std::move(reason);
    return row;
  }

  void judge_list(const std::vector<CallOutput>& references, const std::vector<CallOutput>& devices) {
    for (std::size_t i = 0; i < references.size(); ++i) {
      if (i < devices.size()) {
        add(judge_element(references[i], devices[i]));
        continue;
      }
      add(only_ours(PrecheckVerdict::error, "the device has no such output"));
    }
    for (std::size_t i = references.size(); i < devices.size(); ++i)
      add(only_ours(PrecheckVerdict::error, "the reference has no such output"));
  }

  /// Judges one element of a list. The Python tool does not handle a list in a list.
  OutputRow judge_element(const CallOutput& reference, const CallOutput& device) {
    OutputRow row = judge_one(reference, device);
    const auto* references = std::get_if<CallOutput::List>(&reference.value);
    const auto* devices = std::get_if<CallOutput::List>(&device.value);
    if (references == nullptr || devices == nullptr) return row;
    row.verdict = PrecheckVerdict::none;
    row.reason.clear();
    const std::size_t count = std::max(references->elements.size(), devices->elements.size());
    for (std::size_t i = 0; i < count; ++i) {
      OutputVerdict opinion = {PrecheckVerdict::error, "one side has no such output"};
      if (i < references->elements.size() && i < devices->elements.size()) {
        OutputRow inner = judge_element(references->elements[i], devices->elements[i]);
        opinion = {inner.verdict, std::move(inner.reason)};
      }
      if (opinion.verdict <= row.verdict) continue;
      row.verdict = opinion.verdict;
      row.reason = fmt::format("[{}]: {}", i, opinion.reason);
    }
    if (row.verdict == PrecheckVerdict::pass) row.reason.clear();
    return row;
  }

  static OutputRow told(PythonStatus status, std::string message, PrecheckVerdict verdict,
                        std::string reason) {
    OutputRow row;
    row.status = status;
    row.message = std::move(message);
    row.verdict = verdict;
    row.reason = std::move(reason);
    return row;
  }

  OutputRow judge_one(const CallOutput& reference, const CallOutput& device) {
    if (std::holds_alternative<std::monostate>(reference.value)) {
      const bool both = std::holds_alternative<std::monostate>(device.value);
      return told(PythonStatus::skip, "Bench output is None, skip this test.",
                  both ? PrecheckVerdict::none : PrecheckVerdict::skip, both ? "" : "no reference");
    }
    if (reference.value.index() != device.value.index()) return unlike_types();
    if (const auto* tensor = std::get_if<TensorOutput>(&reference.value))
      return judge_tensors(*tensor, std::get<TensorOutput>(device.value));
    if (const auto* scalar = std::get_if<ScalarOutput>(&reference.value))
      return judge_scalars(*scalar, std::get<ScalarOutput>(device.value));
    if (const auto* list = std::get_if<CallOutput::List>(&reference.value)) {
      if (list->tuple != std::get<CallOutput::List>(device.value).tuple) return unlike_types();
      return told(
          PythonStatus::error,
          fmt::format("Unexpected output type in compare_core: <class '{}'>", list->tuple ? "tuple" : "list"),
          PrecheckVerdict::skip, "lists in lists");
    }
    return judge_others(std::get<OtherOutput>(reference.value), std::get<OtherOutput>(device.value));
  }

  static OutputRow unlike_types() {
    return told(PythonStatus::error, "bench and npu output type is different.", PrecheckVerdict::error,
                "the outputs have different types");
  }

  static OutputRow judge_others(const OtherOutput& reference, const OtherOutput& device) {
    if (reference.type != device.type) return unlike_types();
    return told(PythonStatus::error, "Unexpected output type in compare_core: " + reference.type,
                PrecheckVerdict::skip, "outputs of " + reference.type + " are not judged");
  }

  static OutputRow judge_scalars(const ScalarOutput& reference, const ScalarOutput& device) {
    if (reference.kind != device.kind) return unlike_types();
    constexpr const char* kTypes[] = {"<class 'bool'>", "<class 'int'>", "<class 'float'>", "<class 'str'>"};
    const bool is_float = reference.kind == ScalarOutput::ScalarKind::real;
    const bool equal = is_float ? reference.real == device.real : reference.repr == device.repr;
    OutputRow row;
    row.reference_dtype = row.device_dtype = kTypes[static_cast<std::size_t>(reference.kind)];
    row.status = equal ? PythonStatus::pass : PythonStatus::error;
    if (equal) row[Figure::binary] = integer(0);
    row.verdict = equal ? PrecheckVerdict::pass : PrecheckVerdict::error;
    if (is_float && !equal) {
      // The number may come from a tensor's item(), of a type that is not recorded. It may then have single
      // precision only.
      constexpr double kTolerance = 0x1p-20;
      const bool near = (std::isnan(reference.real) && std::isnan(device.real)) ||
                        (std::isfinite(reference.real) &&
                         std::fabs(reference.real - device.real) <= kTolerance * std::fabs(reference.real));
      row.verdict = near ? PrecheckVerdict::pass : PrecheckVerdict::error;
    }
    if (row.verdict == PrecheckVerdict::error)
      row.reason = fmt::format("{} instead of {}", device.repr, reference.repr);
    return row;
  }

  OutputRow judge_tensors(const TensorOutput& reference, const TensorOutput& device) {
    OutputRow row;
    row.reference_dtype = torch_name(reference.dtype);
    row.device_dtype = torch_name(device.dtype);
    row.shape = tuple_text(device.shape);
    const auto set = [&](PythonStatus status, std::string message, PrecheckVerdict verdict,
                         std::string reason) {
      row.status = status;
      row.message = std::move(message);
      row.verdict = verdict;
      row.reason = std::move(reason);
    };
    const DTypeKind reference_kind = tensor::info(reference.dtype).kind;
    const DTypeKind device_kind = tensor::info(device.dtype).kind;
    if (!is_whole(reference) || !is_whole(device)) {
      set(PythonStatus::skip, "", PrecheckVerdict::skip,
          "an output does not have as many bytes as its shape requires");
    } else if (is_float8(device.dtype) || is_float8(reference.dtype)) {
      // NumPy has no such type, and the Python tool stops here.
      row.status = PythonStatus::error;
      judge_by_us_alone(row, reference, device);
    } else if (reference.shape != device.shape) {
      set(PythonStatus::error,
          fmt::format("The shape of benchtorch.Size([{}]) and nputorch.Size([{}]) not equal.",
                      fmt::join(reference.shape, ", "), fmt::join(device.shape, ", ")),
          PrecheckVerdict::error,
          "the shapes are " + tuple_text(reference.shape) + " and " + tuple_text(device.shape));
    } else if (!are_comparable(reference, device)) {
      row.status = PythonStatus::error;
      row.message = fmt::format("Bench out dtype is {} but npu output dtype is {}, cannot compare.",
                                numpy_name(reference.dtype), numpy_name(device.dtype));
      judge_by_us_alone(row, reference, device);
    } else if (is_empty(device)) {
      set(newer_ ? PythonStatus::skip : PythonStatus::error, "There is not bench calculation result.",
          PrecheckVerdict::pass, "no elements");
    } else if (reference_kind == DTypeKind::floating && device_kind == DTypeKind::floating) {
      judge_float_tensors(row, reference, device);
    } else {
      judge_integer_tensors(row, reference, device);
    }
    return row;
  }

  /// Whether the Python tool compares two such tensors.
  bool are_comparable(const TensorOutput& reference, const TensorOutput& device) const {
    const DTypeKind kind = tensor::info(reference.dtype).kind;
    if (kind != tensor::info(device.dtype).kind || kind == DTypeKind::complex) return false;
    return newer_ || kind != DTypeKind::integer ||
           (reference.dtype != DType::int8 && device.dtype != DType::int8);
  }

  void judge_by_us_alone(OutputRow& row, const TensorOutput& reference, const TensorOutput& device) const {
    const DTypeKind kind = tensor::info(device.dtype).kind;
    OutputVerdict opinion = {PrecheckVerdict::error,
                             fmt::format("the types are {} and {}", tensor::info(reference.dtype).name,
                                         tensor::info(device.dtype).name)};
    if (reference.shape != device.shape) {
      opinion.reason = "the shapes are " + tuple_text(reference.shape) + " and " + tuple_text(device.shape);
    } else if (kind == tensor::info(reference.dtype).kind && is_empty(device)) {
      opinion = {PrecheckVerdict::pass, "no elements"};
    } else if (kind == tensor::info(reference.dtype).kind) {
      opinion = kind == DTypeKind::floating || kind == DTypeKind::complex
                    ? judge_floats(float_figures(reference, device, {}), device, standards_, inputs_)
                    : judge_integers(integer_figures(reference, device), device,
                                     standards_.may_differ_by_one(operation_));
    }
    row.verdict = opinion.verdict;
    row.reason = std::move(opinion.reason);
  }

  // Integers.

  void judge_integer_tensors(OutputRow& row, const TensorOutput& reference,
                             const TensorOutput& device) const {
    const IntegerFigures figures = integer_figures(reference, device);
    const bool quantized =
        standards_.may_differ_by_one(operation_) && tensor::info(device.dtype).kind == DTypeKind::integer;
    OutputVerdict opinion = judge_integers(figures, device, quantized);
    row.verdict = opinion.verdict;
    row.reason = std::move(opinion.reason);
    if (quantized && newer_) {
      const auto largest = static_cast<double>(figures.largest_wrapped);
      const bool passes = largest <= limits_.quantized;
      row[Figure::max_absolute] = integer(largest);
      row.status = passes ? PythonStatus::pass : PythonStatus::error;
      row.message = fmt::format(
          "Quantization type: Max abs error is {:.2f}, {}.\n", largest,
          passes ? "less than or equal to 1, consider as pass" : "greater than 1, consider as error");
      return;
    }
    row[Figure::binary] = share(figures.unequal, figures.count);
    row.status = figures.unequal == 0 ? PythonStatus::pass : PythonStatus::error;
    row.message =
        newer_ ? fmt::format("Current {} data, only perform binary comparison.", numpy_name(reference.dtype))
               : fmt::format("Compare algorithm is not supported for {} data. Only judged by Error Rate.\n",
                             numpy_name(reference.dtype));
  }

  // Floating-point numbers.

  std::optional<Criterion> criterion_for(DType dtype) const {
    if (newer_ && inputs_.float8_input) return Criterion::absolute_threshold;
    if (dtype != DType::float16 && dtype != DType::bfloat16 && dtype != DType::float32) return std::nullopt;
    return newer_ ? Criterion::benchmark : standards_.listed(operation_);
  }

  FloatRequest request_for(std::optional<Criterion> criterion, DType dtype) const {
    const TypeLimits& type = standards_.type(dtype);
    FloatRequest request;
    request.ulp_threshold = dtype == DType::float32 ? limits_.ulp_float32 : limits_.ulp_other;
    request.small_value = type.small_value;
    request.relative_tolerance = type.relative_tolerance;
    request.small_tolerance = type.absolute_tolerance;
    request.sorts = criterion == Criterion::benchmark || criterion == Criterion::absolute_threshold ||
                    criterion == Criterion::accumulative_error;
    if (criterion == Criterion::benchmark) {
      request.small_tolerance = type.benchmark_tolerance;
      request.means = true;
    } else if (criterion == Criterion::accumulative_error) {
      request.small_value = limits_.accumulative_small_value;
      request.small_tolerance = request.relative_tolerance = type.accumulative_bound;
    } else if (criterion == Criterion::ulp) {
      request.ulp = true;
    }
    return request;
  }

  void judge_float_tensors(OutputRow& row, const TensorOutput& reference, const TensorOutput& device) const {
    const std::optional<Criterion> criterion = criterion_for(device.dtype);
    const FloatFigures figures = float_figures(reference, device, request_for(criterion, device.dtype));
    std::string remark;
    if (criterion) {
      fill(row, *criterion, figures);
    } else {
      remark = "The data type " + torch_name(device.dtype) + " is not supported for new precision standard.";
    }
    row.status = status_of(row, figures, device.dtype, remark);
    OutputVerdict opinion = judge_floats(figures, device, standards_, inputs_);
    row.verdict = opinion.verdict;
    row.reason = std::move(opinion.reason);
  }

  /// A number in the precision in which the Python tool works.
  static FigureValue number(const FloatFigures& figures, double value) {
    return {figures.single ? FigureValue::Form::single : FigureValue::Form::real, value, {}};
  }
  static FigureValue ulp_number(const FloatFigures& figures, double value) {
    return {figures.ulp_single ? FigureValue::Form::single : FigureValue::Form::real, value, {}};
  }
  static FigureValue balance(const FloatFigures& figures) {
    const double above = static_cast<double>(figures.above);
    const double below = static_cast<double>(figures.below);
    return real(std::fabs(above - below) / static_cast<double>(figures.count));
  }

  void fill(OutputRow& row, Criterion criterion, const FloatFigures& figures) const {
    switch (criterion) {
      case Criterion::benchmark: {
        const auto n = static_cast<double>(figures.count);
        const auto left_out = static_cast<double>(figures.count - figures.normal);
        constexpr double kNotZero = 0.0001;
        row[Figure::balance] = balance(figures);
        row[Figure::rmse] = real(std::sqrt(figures.mean_square * (n / (n - left_out + kNotZero) + kNotZero)));
        row[Figure::small_share] = share(figures.small_errors, figures.small);
        row[Figure::max_relative] = figures.normal == 0 ? integer(0) : number(figures, figures.max_relative);
        row[Figure::mean_relative] =
            figures.normal == 0 ? integer(0) : number(figures, figures.mean_relative);
        break;
      }
      case Criterion::accumulative_error:
        row[Figure::balance] = balance(figures);
        [[fallthrough]];
      case Criterion::absolute_threshold:
        row[Figure::inf_nan_rate] = share(figures.nonfinite_errors, figures.nonfinite);
        row[Figure::relative_rate] = share(figures.relative_errors, figures.normal);
        row[Figure::absolute_rate] = share(figures.small_errors, figures.small);
        break;
      case Criterion::binary_consistency:
        row[Figure::binary] = share(figures.unequal, figures.count);
        break;
      case Criterion::ulp:
        row[Figure::max_ulp] = ulp_number(figures, figures.max_ulp);
        row[Figure::mean_ulp] = ulp_number(figures, figures.mean_ulp);
        row[Figure::ulp_share] = share(figures.ulp_above, figures.count);
        break;
      case Criterion::thousandth:
        row[Figure::thousandth] = share(figures.within_thousandth, figures.count);
        break;
    }
  }

  /// Follows the steps of the Python tool: each step decides the status, or the next one does.
  PythonStatus status_of(OutputRow& row, const FloatFigures& figures, DType dtype,
                         const std::string& remark) const {
    const auto end = [&](PythonStatus status, const char* because) {
      row.message += fmt::format("{}, consider as {}, skip other check and set to SPACE.\n", because,
                                 status == PythonStatus::error     ? "error"
                                 : status == PythonStatus::warning ? "warning"
                                                                   : "pass");
      return status;
    };
    row.message = remark + cosine_remark(figures) + "\n";
    const bool has_cosine =
        figures.count > 1 && !is_zero(figures.max_device) && !is_zero(figures.max_reference);
    if (has_cosine) row[Figure::cosine] = real(figures.cosine);
    const bool one_is_zero =
        figures.count > 1 && is_zero(figures.max_device) != is_zero(figures.max_reference);
    // The newer release continues if the cosine is NaN.
    const bool differs =
        has_cosine && (newer_ ? figures.cosine <= limits_.cosine : !(figures.cosine > limits_.cosine));
    if (one_is_zero || differs) return end(PythonStatus::error, "Cosine similarity is less than 0.99");

    row[Figure::max_absolute] = number(figures, figures.max_absolute);
    if (figures.max_absolute < limits_.max_absolute)
      return end(PythonStatus::pass, "Max abs error is less than 0.001");

    const auto n = static_cast<double>(figures.count);
    const double thousandth = static_cast<double>(figures.within_thousandth) / n;
    if (dtype == DType::float16 || dtype == DType::bfloat16) {
      const double hundredth = static_cast<double>(figures.within_hundredth) / n;
      row[Figure::hundredth] = real(hundredth);
      if (!(hundredth > limits_.hundredth_share))
        return end(PythonStatus::error, "Relative error is greater than 0.01");
      row[Figure::thousandth] = real(thousandth);
      if (!(thousandth > limits_.thousandth_share))
        return end(PythonStatus::warning, "Relative error is greater than 0.001");
      return end(PythonStatus::pass, "Relative error is less than 0.001");
    }
    const double ten_thousandth = static_cast<double>(figures.within_ten_thousandth) / n;
    row[Figure::thousandth] = real(thousandth);
    row[Figure::ten_thousandth] = real(ten_thousandth);
    if (!(thousandth > limits_.thousandth_share))
      return end(PythonStatus::error, "Relative error is greater than 0.001");
    if (!(ten_thousandth > limits_.ten_thousandth_share))
      return end(PythonStatus::warning, "Relative error is greater than 0.0001");
    row.message += "Relative error is less than 0.0001, consider as pass.\n";
    return PythonStatus::pass;
  }

  static bool is_zero(double largest) { return largest <= 0x1p-52; }

  static const char* cosine_remark(const FloatFigures& figures) {
    if (figures.count == 1)
      return "All the data in device dump data is scalar. Please refer to other compare algorithms.";
    if (is_zero(figures.max_device)) {
      return is_zero(figures.max_reference) ? "All the data in device and bench outputs are zero."
                                            : "All the data is zero in device dump data.";
    }
    if (is_zero(figures.max_reference)) return "All the data is zero in bench dump data.";
    return std::isnan(figures.cosine) ? "Dump data has NaN when comparing with Cosine Similarity." : "";
  }

  // Dropout.

  static std::optional<double> zeros(const TensorOutput& tensor) {
    const DTypeKind kind = tensor::info(tensor.dtype).kind;
    if (!is_whole(tensor) || is_empty(tensor) || kind != DTypeKind::floating) return std::nullopt;
    const FloatFigures figures = float_figures(tensor, tensor, {});
    return static_cast<double>(figures.zeros) / static_cast<double>(figures.count);
  }

  void judge_dropout(const CallOutput& reference, const CallOutput& device) {
    OutputRow row = only_ours(PrecheckVerdict::skip, "its result is random");
    const auto* reference_tensor = std::get_if<TensorOutput>(&reference.value);
    const auto* device_tensor = std::get_if<TensorOutput>(&device.value);
    judgement_.status = PythonStatus::pass;
    if (reference_tensor != nullptr && device_tensor != nullptr) {
      std::uint64_t count = 1;
      for (const std::uint64_t size : reference_tensor->shape) count *= size;
      const auto reference_zeros = zeros(*reference_tensor);
      const auto device_zeros = zeros(*device_tensor);
      if (reference_zeros && device_zeros && static_cast<double>(count) >= limits_.dropout_elements &&
          !(std::fabs(*reference_zeros - *device_zeros) < limits_.dropout_zeros)) {
        judgement_.status = PythonStatus::error;
        row.verdict = PrecheckVerdict::error;
        row.reason = fmt::format("{:.3g} % of the elements are zero instead of {:.3g} %", 100 * *device_zeros,
                                 100 * *reference_zeros);
      }
    }
    add(std::move(row));
  }

  std::string prefix_;
  std::string operation_;
  const Standards& standards_;
  const OtherLimits& limits_;
  bool newer_;
  const InputFacts& inputs_;
  CallJudgement judgement_;
};

}  // namespace

CallJudgement judge(const ApiName& api, CallDirection direction, const CallOutput& reference,
                    const CallOutput& device, const Standards& standards, Selection selection,
                    const InputFacts& inputs) {
  return OutputJudge(api, direction, standards, selection, inputs).judge(reference, device);
}

}  // namespace msprobe::precheck
