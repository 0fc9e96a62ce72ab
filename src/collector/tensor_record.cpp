// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "collector/c_tensor.hpp"
#include "collector/checksum.hpp"
#include "collector/step.hpp"
#include "collector/value_writer.hpp"
#include "support/json_writer.hpp"

namespace msprobe::collector {
namespace {

using tensor::DType;
using tensor::DTypeKind;

void append_member(std::string& out, int level, std::string_view key) {
  out += ',';
  append_json_line(out, level, 1);
  out += '"';
  out += key;
  out += "\": ";
}

bool is_float8(DType dtype) {
  return tensor::info(dtype).kind == DTypeKind::floating && tensor::info(dtype).size == 1;
}

/// Rounds to as many bits of the mantissa as the type has; a number beyond its largest becomes infinite.
double round_to(DType dtype, double value) {
  if (dtype == DType::float64 || !std::isfinite(value) || value == 0) return value;
  if (dtype == DType::float32) return static_cast<float>(value);
  const bool half = dtype == DType::float16;
  const int digits = half ? 11 : 8;
  const int lowest = half ? -24 : -133;  // exponent of the smallest step
  const double largest = half ? 65504.0 : 0x1.FEp127;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int step = std::max(exponent - digits, lowest);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -step)), step);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VAL, value) : rounded;
}

bool beyond_float(double value) {
  return std::isfinite(value) && std::isinf(static_cast<float>(value));
}

class Numbers {
 public:
  Numbers(std::string& out, int level) : out_(out), level_(level) {}

  void null(std::string_view key) {
    append_member(out_, level_, key);
    out_ += "null";
  }
  void nulls() {
    for (const std::string_view key : kKeys) null(key);
  }
  void real(std::string_view key, double value) {
    append_member(out_, level_, key);
    append_json_real(out_, value);
  }
  void integer(std::string_view key, DType dtype, std::int64_t value) {
    append_member(out_, level_, key);
    if (dtype == DType::uint64) {
      append_json_integer(out_, std::bit_cast<std::uint64_t>(value));
    } else {
      append_json_integer(out_, value);
    }
  }
  void boolean(std::string_view key, bool value) {
    append_member(out_, level_, key);
    out_ += value ? "true" : "false";
  }

  static constexpr std::array<std::string_view, 4> kKeys = {"Max", "Min", "Mean", "Norm"};

 private:
  std::string& out_;
  int level_;
};

/// For PyTorch, the Python tool 26.2 computes these only for floats of at most 32 bits, and not at precision
/// high.
bool has_mean(DType dtype, const NumberRules& rules) {
  if (!rules.python_compatible || rules.mindspore) return true;
  return tensor::info(dtype).kind == DTypeKind::floating && dtype != DType::float64 && !rules.high_precision;
}

/// The type to which the mean and the norm are rounded. Half precision is rounded to float32, not to its own
/// type: a sum must not become infinite if no element is.
DType rounding(DType dtype, const NumberRules& rules) {
  if (tensor::info(dtype).kind == DTypeKind::integer || dtype == DType::float64 || dtype == DType::complex128)
    return DType::float64;
  if (tensor::info(dtype).kind == DTypeKind::complex) return DType::float32;
  if (rules.python_compatible) return dtype;
  return rules.high_precision ? DType::float64 : DType::float32;
}

void append_dtype(std::string& out, const RecordRules& rules, const msprobe_tensor& tensor,
                  std::optional<DType> dtype) {
  if (tensor.dtype_text != nullptr) {
    append_json_string(out, tensor.dtype_text);
  } else if (!dtype) {
    out += "\"unknown\"";
  } else if (rules.numbers.mindspore && !tensor::info(*dtype).mindspore.empty()) {
    append_json_string(out, tensor::info(*dtype).mindspore);
  } else {
    out += "\"torch.";
    out += tensor::info(*dtype).name;
    out += '"';
  }
}

void append_shape(std::string& out, int level, const TensorView& view) {
  out += '[';
  for (std::size_t axis = 0; axis < view.rank; ++axis) {
    if (axis > 0) out += ',';
    append_json_line(out, level + 1, 1);
    append_json_integer(out, view.shape[axis]);
  }
  if (view.rank > 0) append_json_line(out, level, 1);
  out += ']';
}

/// The numbers of one tensor, computed on demand, unless they are known from before.
class TensorNumbers {
 public:
  /// `saved`: a file will hold the elements.
  TensorNumbers(const TensorView& view, const msprobe_tensor& tensor, const Reuse& reuse, bool with_crc,
                bool saved)
      : view_(view), with_crc_(with_crc) {
    keep_.possible = reuse.cache != nullptr && reuse.owner && reuse.owner->keepable() &&
                     view.data != nullptr && view.count > 0 &&
                     (saved || view.bytes() >= ReuseCache::kMinBytes);
    if (!keep_.possible) return;
    const std::byte* data = view.data;
    if (tensor.source != nullptr) {
      // The offset is the same in both.
      data = static_cast<const std::byte*>(tensor.source) +
             (view.data - static_cast<const std::byte*>(tensor.data));
    }
    keep_.identity = {data, tensor.version};
    const bool checked = saved || (tensor.flags & MSPROBE_TENSOR_UNCOUNTED) != 0;
    with_crc_ = with_crc_ || (checked && !saved);  // the file's checksum is that of the copy that is written
    keep_.results = reuse.cache->find(view, keep_.identity, checked ? Check::checksum : Check::samples);
  }
  TensorNumbers(const TensorView& view, Keep keep, bool with_crc)
      : view_(view), with_crc_(with_crc), keep_(std::move(keep)) {}
  const Measured& measured() {
    Results& results = keep_.results;
    if (!results.measured) {
      results.measured = measure(view_, with_crc_ && !results.crc ? &results.crc : nullptr);
      keep_.fresh = true;
    }
    return *results.measured;
  }
  std::uint32_t crc() {
    std::optional<std::uint32_t>& crc = keep_.results.crc;
    if (!crc) {
      crc = crc32_of(view_);
      keep_.fresh = true;
    }
    return *crc;
  }
  /// The results to keep for the next caller.
  Keep take() { return std::move(keep_); }

 private:
  const TensorView& view_;
  bool with_crc_;
  Keep keep_;
};

/// The checksum as the record spells it.
std::string checksum_text(SummaryMode summary, std::uint64_t value) {
  return summary == SummaryMode::xor_ ? fmt::format("\"0x{:016x}\"", value)
                                      : fmt::format("\"{:08x}\"", value);
}

/// Empty if there are no bytes to compute it from.
std::string crc32_text(const TensorView& view, TensorNumbers& values) {
  if (view.data == nullptr && view.count > 0) return {};
  return fmt::format("{:08x}", view.count == 0 ? 0 : values.crc());
}

void append_xor(std::string& out, const RecordRules& rules, const TensorView& view) {
  if (view.data == nullptr || view.count == 0) {
    out += "null";
    return;
  }
  const DTypeKind kind = tensor::info(view.dtype).kind;
  if (rules.numbers.python_compatible && view.rank == 0 && kind == DTypeKind::floating) {
    append_json_real(out, measure(view).max);
    return;
  }
  std::uint64_t value = xor_of(view);
  if (rules.numbers.python_compatible && view.rank == 0 && kind == DTypeKind::integer)
    value = static_cast<std::uint64_t>(measure(view).integer_max);
  out += checksum_text(SummaryMode::xor_, value);
}

}  // namespace

void append_numbers(std::string& out, int level, const NumberTraits& kind, const NumberRules& rules,
                    const Measured* measured) {
  Numbers numbers(out, level);
  if (!kind.dtype || measured == nullptr || measured->count == 0) return numbers.nulls();
  const DType dtype = *kind.dtype;
  const DTypeKind type = tensor::info(dtype).kind;
  if (rules.python_compatible && is_float8(dtype)) return numbers.nulls();

  if (type == DTypeKind::boolean) {
    numbers.boolean("Max", measured->max != 0);
    numbers.boolean("Min", measured->min != 0);
    if (kind.array) {
      numbers.real("Mean", measured->mean);
      numbers.real("Norm", measured->norm);
    } else {
      numbers.null("Mean");
      numbers.null("Norm");
    }
    if (!rules.python_compatible) {
      const double trues = measured->mean * static_cast<double>(measured->count);
      numbers.integer("True_count", DType::int64, std::llround(trues));
    }
    return;
  }
  const auto element = [&](std::string_view key, double real, std::int64_t integer) {
    type == DTypeKind::integer ? numbers.integer(key, dtype, integer) : numbers.real(key, real);
  };
  element("Max", measured->max, measured->integer_max);
  element("Min", measured->min, measured->integer_min);
  if (kind.scalar && !kind.array && type != DTypeKind::complex) {
    element("Mean", measured->max, measured->integer_max);
    element("Norm", measured->max, measured->integer_max);
    return;
  }
  // NumPy's results have the array's own type.
  const DType rounded = rounding(dtype, {rules.high_precision, rules.python_compatible || kind.array, false});
  if (type == DTypeKind::complex) {
    numbers.real("Mean", round_to(rounded, measured->mean));
    if (rules.mindspore || kind.array) {
      numbers.real("Norm", round_to(rounded, measured->norm));
    } else {
      numbers.null("Norm");
    }
    return;
  }
  if (!kind.array && !has_mean(dtype, rules)) {
    numbers.null("Mean");
    numbers.null("Norm");
    return;
  }
  double mean = measured->mean;
  double norm = measured->norm;
  // The Python tool sums in float32, so the sums of a mask overflow.
  if (rules.python_compatible && !rules.mindspore && type == DTypeKind::floating && dtype != DType::float64) {
    if (beyond_float(mean * static_cast<double>(measured->count))) mean = std::copysign(HUGE_VAL, mean);
    if (beyond_float(norm * norm)) norm = HUGE_VAL;
  }
  numbers.real("Mean", round_to(rounded, mean));
  numbers.real("Norm", round_to(rounded, norm));
  if (measured->neg_inf > 0 && !rules.python_compatible)
    numbers.integer("Neg_inf_count", DType::int64, static_cast<std::int64_t>(measured->neg_inf));
}

void crop(TensorView& view, const std::vector<SliceRule>& rules) {
  for (const SliceRule& rule : rules) {
    if (rule.dim >= view.rank) continue;
    const auto axis = static_cast<std::size_t>(rule.dim);
    const std::int64_t length = view.shape[axis];
    if (rule.size && static_cast<std::int64_t>(*rule.size) != length) continue;
    const auto place = [length](std::int64_t index) {
      return std::clamp<std::int64_t>(index < 0 ? index + length : index, 0, length);
    };
    const std::int64_t begin = place(rule.begin);
    const std::int64_t end = std::max(begin, rule.end ? place(*rule.end) : length);
    if (end - begin == length) continue;
    if (view.data != nullptr && end > begin)
      view.data += begin * view.strides[axis] * static_cast<std::int64_t>(view.element_size());
    view.shape[axis] = end - begin;
    view.count = view.count / static_cast<std::uint64_t>(length) * static_cast<std::uint64_t>(end - begin);
  }
}

bool has_file(const msprobe_tensor& tensor, const TensorView& view) {
  const bool elements = view.data != nullptr || (tensor.flags & MSPROBE_TENSOR_LATER) != 0;
  return elements && view.count > 0 && (tensor.flags & MSPROBE_TENSOR_NO_FILE) == 0;
}

LateTexts late_texts(const Deferred& deferred, const DeviceResults& results) {
  LateTexts texts;
  append_numbers(texts.numbers, deferred.level, deferred.kind, deferred.rules->numbers,
                 results.measured ? &*results.measured : nullptr);
  texts.checksum = results.checksum ? checksum_text(deferred.rules->summary, *results.checksum) : "null";
  return texts;
}

LateTexts late_texts(const Deferred& deferred, const TensorView& view, Keep& keep) {
  const RecordRules& rules = *deferred.rules;
  LateTexts texts;
  const bool by_crc = deferred.checksum && rules.summary == SummaryMode::md5;
  TensorNumbers values(view, std::move(keep), by_crc);
  if (deferred.numbers)
    append_numbers(texts.numbers, deferred.level, deferred.kind, rules.numbers, &values.measured());
  if (by_crc) {
    texts.checksum = checksum_text(SummaryMode::md5, values.crc());
  } else if (deferred.checksum) {
    append_xor(texts.checksum, rules, view);
  }
  keep = values.take();
  return texts;
}

void fill(const Deferred& deferred, LateTexts texts) {
  if (deferred.numbers) {
    deferred.numbers->text = std::move(texts.numbers);
    deferred.numbers->filled = true;
  }
  if (deferred.checksum) {
    deferred.checksum->text = std::move(texts.checksum);
    deferred.checksum->filled = true;
  }
}

void append_record(std::string& out, const RecordRules& rules, const msprobe_tensor& tensor,
                   const TensorView& view, const Reuse& reuse, RecordedTensor& record) {
  const int level = record.level + 1;
  const std::optional<DType> dtype = dtype_of(tensor.dtype);
  const auto text = [&](std::string_view key, std::string_view value) {
    append_member(out, level, key);
    append_json_string(out, value);
  };
  out += '{';
  append_json_line(out, level, 1);
  out += "\"type\": ";
  append_json_string(out, tensor.type != nullptr    ? std::string_view(tensor.type)
                          : rules.numbers.mindspore ? "mindspore.Tensor"
                                                    : "torch.Tensor");
  append_member(out, level, "dtype");
  append_dtype(out, rules, tensor, dtype);
  append_member(out, level, "shape");
  append_shape(out, level, view);

  NumberTraits kind{dtype, view.rank == 0,
                    tensor.type != nullptr && std::string_view(tensor.type) == "numpy.ndarray"};
  const bool checksums = !kind.array && rules.summary != SummaryMode::statistics;
  const bool by_xor = checksums && rules.summary == SummaryMode::xor_;
  const bool by_crc = checksums && rules.summary == SummaryMode::md5;
  const bool named = !record.data_name.empty();
  const bool later = (tensor.flags & MSPROBE_TENSOR_LATER) != 0 && view.count > 0;
  // Among numbers that arrive later, only those of a device's kernel include checksums.
  const bool checksum_comes = checksums && (later || (tensor.flags & MSPROBE_TENSOR_ON_DEVICE) != 0);
  if (later || ((tensor.flags & MSPROBE_TENSOR_DEFERRED) != 0 && (!by_xor || checksum_comes))) {
    Deferred& deferred = record.deferred.emplace();
    deferred.level = level;
    deferred.kind = kind;
    deferred.data_name = record.data_name;
    if (later && rules.hard_links && !record.data_name.empty() && reuse.owner && reuse.owner->keepable()) {
      deferred.identity = {static_cast<const std::byte*>(tensor.source), tensor.version};
      deferred.owner = reuse.owner;
    }
  }
  const auto gap = [&](std::shared_ptr<LateText>& slot) {
    slot = std::make_shared<LateText>();
    record.gaps.push_back({out.size(), slot});
    return slot;
  };
  TensorNumbers values(view, tensor, reuse, by_crc, named && rules.hard_links);
  if (by_xor) {
    append_member(out, level, "md5");
    if (record.deferred) {
      gap(record.deferred->checksum)->text = "null";
    } else {
      append_xor(out, rules, view);
    }
  } else if (record.deferred) {
    append_numbers(gap(record.deferred->numbers)->text, level, kind, rules.numbers, nullptr);
  } else if (tensor.statistics != nullptr) {
    const Measured given = measured_of(known_part(tensor.statistics));
    append_numbers(out, level, kind, rules.numbers, &given);
    record.nonfinite = !std::isfinite(given.max) || !std::isfinite(given.min);
  } else if (view.data != nullptr && view.count > 0) {
    const Measured& measured = values.measured();
    append_numbers(out, level, kind, rules.numbers, &measured);
    record.nonfinite = !std::isfinite(measured.max) || !std::isfinite(measured.min);
  } else {
    append_numbers(out, level, kind, rules.numbers, nullptr);
  }

  if ((tensor.flags & MSPROBE_TENSOR_HAS_REQUIRES_GRAD) != 0) {
    append_member(out, level, "requires_grad");
    out += (tensor.flags & MSPROBE_TENSOR_REQUIRES_GRAD) != 0 ? "true" : "false";
  }
  if (tensor.extra != nullptr) append_foreign_members(out, tensor.extra, level);
  if (by_crc) record.md5 = crc32_text(view, values);
  if (named && !rules.bench) text("data_name", record.data_name);
  if (by_crc) {
    append_member(out, level, "md5");
    if (record.deferred && checksum_comes) {
      gap(record.deferred->checksum)->text = "null";
    } else if (record.md5.empty()) {
      out += "null";
    } else {
      append_json_string(out, record.md5);
    }
  }
  if (named && rules.bench) text("data_name", record.data_name);
  record.keep = values.take();
  append_json_line(out, level - 1, 1);
  out += '}';
}

}  // namespace msprobe::collector
