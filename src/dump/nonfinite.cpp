// SPDX-License-Identifier: Apache-2.0
#include "dump/nonfinite.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "support/ascii.hpp"

namespace msprobe::dump {
namespace {

constexpr double kLargestFloat = std::numeric_limits<float>::max();
constexpr double kLargestHalf = 65504;

/// `torch.float16` and `Float16` are `float16`.
std::string dtype_of(const Entry& entry, Entry::Index item) {
  std::string name = lower_case(entry.string(item, "dtype"));
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  return name;
}

double elements_of(const Entry& entry, Entry::Index item) {
  const Entry::Index shape = entry.find(item, "shape");
  double elements = 1;
  if (!entry.is(shape, NodeKind::array)) return elements;
  entry.children(shape, [&](Entry::Index size) { elements *= number_of(entry, size).value_or(1); });
  return elements;
}

/// The largest magnitude of the elements.
std::optional<double> largest_element(const Entry& entry, Entry::Index item) {
  const auto max = number_of(entry, entry.find(item, "Max"));
  const auto min = number_of(entry, entry.find(item, "Min"));
  if (!max || !min) return std::nullopt;
  return std::max(std::fabs(*max), std::fabs(*min));
}

/// Whether a sum over the elements or their squares may be infinite in the type in which it was computed.
/// That is the tensor's type on some devices, and float32 with old recorders whatever the type.
bool may_overflow(const Entry& entry, Entry::Index item, bool squares) {
  const auto largest = largest_element(entry, item);
  if (!largest || !std::isfinite(*largest)) return false;
  const double limit = dtype_of(entry, item) == "float16" ? kLargestHalf : kLargestFloat;
  return elements_of(entry, item) * *largest * (squares ? *largest : 1) >= limit;
}

struct FloatType {
  std::string_view name;
  int digits = 0;  // binary, of the mantissa
  double largest = 0;
};

/// 1e3, 1e4, ... as near as the type comes: numbers that people write.
bool is_round(double value, const FloatType& type) {
  const double power = std::pow(10, std::round(std::log10(value)));
  int exponent = 0;
  const double mantissa = std::frexp(power, &exponent);
  return power >= 1e3 &&
         value == std::ldexp(std::nearbyint(std::ldexp(mantissa, type.digits)), exponent - type.digits);
}

}  // namespace

Bad bad_text(std::string_view text, bool tab) {
  if (tab && text.ends_with('\t')) text.remove_suffix(1);
  const auto is = [&](std::string_view word) {
    if (text.size() != word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if ((text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]) != word[i]) return false;
    }
    return true;
  };
  if (is("nan")) return kNan;
  return is("inf") || is("-inf") ? kInf : 0;
}

Bad bad_statistic(const Entry& entry, Entry::Index node, bool tab) {
  const std::string_view text = entry.text(node);
  if (entry.is(node, NodeKind::string)) return bad_text(text, tab);
  if (!entry.is(node, NodeKind::real)) return 0;
  if (text.front() == 'N') return kNan;
  return std::isinf(entry.number(node)) ? kInf : 0;
}

Bad bad_item(const Entry& entry, Entry::Index node, bool tab) {
  Bad bad = 0;
  for (const std::string_view key : {"Max", "Min"}) {
    const Entry::Index value = entry.find(node, key);
    if (value != Entry::kNone) bad |= bad_statistic(entry, value, tab);
  }
  return bad;
}

bool bad_sum(const Entry& entry, Entry::Index node, std::string_view statistic, bool as_is) {
  const Entry::Index value = entry.find(node, statistic);
  return value != Entry::kNone && bad_statistic(entry, value, false) != 0 &&
         (as_is || !may_overflow(entry, node, statistic == "Norm"));
}

bool shows_bad(const Entry& entry, Entry::Index node, bool as_is) {
  return entry.is(node, NodeKind::object) &&
         (bad_item(entry, node, false) != 0 || bad_sum(entry, node, "Mean", as_is));
}

std::optional<double> number_of(const Entry& entry, Entry::Index node) {
  if (!entry.is_number(node)) return std::nullopt;
  const double value = entry.number(node);
  if (std::isnan(value)) return std::nullopt;
  return value;
}

bool NormJump::is_tensor(Entry::Index item) const {
  const std::string_view type = entry_.string(item, "type");
  return type == "torch.Tensor" || type == "mindspore.Tensor";
}

void NormJump::input(Entry::Index item) {
  if (!is_tensor(item)) {
    const auto number = number_of(entry_, entry_.find(item, "value"));
    if (number) given_.push_back(*number);
    return;
  }
  const auto norm = number_of(entry_, entry_.find(item, "Norm"));
  if (!norm) return;
  if (!as_is_ && std::isinf(*norm) && may_overflow(entry_, item, true)) unknown_ = true;
  input_ = std::max(input_.value_or(*norm), *norm);
}

void NormJump::output(Entry::Index item) {
  if (!is_tensor(item)) return;
  auto norm = number_of(entry_, entry_.find(item, "Norm"));
  if (!norm) return;
  if (!as_is_) {
    if (is_masked(item)) return;
    if (std::isinf(*norm) && may_overflow(entry_, item, true)) {
      norm = largest_element(entry_, item);
      or_more_ = true;
    }
  }
  output_ = std::max(output_.value_or(*norm), *norm);
}

bool NormJump::is_given(Entry::Index item) const {
  const auto largest = largest_element(entry_, item);
  return largest && std::ranges::any_of(given_, [&](double number) { return std::fabs(number) == *largest; });
}

bool NormJump::is_masked(Entry::Index item) const {
  if (is_given(item)) return true;
  const auto max = number_of(entry_, entry_.find(item, "Max"));
  const auto min = number_of(entry_, entry_.find(item, "Min"));
  if (!max || !min || !(*min < 0) || std::fabs(*max) >= -*min) return false;
  static const std::array<FloatType, 4> kTypes = {{
      {"float16", 11, kLargestHalf},
      {"bfloat16", 8, 0x1.fep127},
      {"float32", 24, kLargestFloat},
      {"float64", 53, std::numeric_limits<double>::max()},
  }};
  const std::string dtype = dtype_of(entry_, item);
  const auto type = std::ranges::find(kTypes, dtype, &FloatType::name);
  return type != kTypes.end() && (*min == -type->largest || is_round(-*min, *type));
}

std::optional<NormJump::JumpNorms> NormJump::above(double ratio) const {
  if (unknown_ || !input_ || !output_) return std::nullopt;
  if (!((*input_ == 0 ? *output_ : *output_ / *input_) > ratio)) return std::nullopt;
  return JumpNorms{*input_, *output_, or_more_};
}

}  // namespace msprobe::dump
