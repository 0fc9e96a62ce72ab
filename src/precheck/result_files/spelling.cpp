// SPDX-License-Identifier: Apache-2.0
#include "precheck/result_files/spelling.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

namespace msprobe::precheck {
namespace {

struct FigureColumn {
  std::string_view python;
  std::string_view english;
};
constexpr std::array<FigureColumn, kFigureCount> kFigureColumnNames = {{
    {"余弦相似度", "Cosine"},
    {"最大绝对误差", "Max Absolute Error"},
    {"双百指标", "Within 1 %"},
    {"双千指标", "Within 0.1 %"},
    {"双万指标", "Within 0.01 %"},
    {"二进制一致错误率", "Unequal"},
    {"误差均衡性", "Error Balance"},
    {"均方根误差", "RMSE"},
    {"小值域错误占比", "Small Value Errors"},
    {"相对误差最大值", "Max Relative Error"},
    {"相对误差平均值", "Mean Relative Error"},
    {"inf/nan错误率", "Inf/NaN Error Rate"},
    {"相对误差错误率", "Relative Error Rate"},
    {"绝对误差错误率", "Absolute Error Rate"},
    {"ULP误差最大值", "Max ULP Error"},
    {"ULP误差平均值", "Mean ULP Error"},
    {"ULP误差大于阈值占比", "ULP Errors Above Limit"},
}};

/// str() of a NumPy float32: the shortest digits that read back; an exponent below 1e-4 and from 1e6 on
/// (NumPy 2.4).
std::string spelled_single(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> text;
  const double size = std::fabs(static_cast<double>(value));
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e6);
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 scientific ? std::chars_format::scientific : std::chars_format::fixed);
  std::string digits(text.data(), end.ptr);
  if (!scientific && digits.find('.') == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

std::string_view column_of(Figure figure) {
  return kFigureColumnNames[static_cast<std::size_t>(figure)].python;
}

std::string_view english_column_of(Figure figure) {
  return kFigureColumnNames[static_cast<std::size_t>(figure)].english;
}

std::string spelled_figure(const FigureValue& figure) {
  switch (figure.form) {
    case FigureValue::Form::blank:
      return " ";
    case FigureValue::Form::text:
      return figure.text;
    case FigureValue::Form::integer:
      return fmt::format("{:.0f}", figure.value);
    case FigureValue::Form::single:
      return spelled_single(static_cast<float>(figure.value));
    case FigureValue::Form::real:
      break;
  }
  return std::isnan(figure.value) ? "nan" : fmt::format("{:.14f}", figure.value);
}

std::string_view status_word(PythonStatus status, Selection selection) {
  switch (status) {
    case PythonStatus::pass:
      return "pass";
    case PythonStatus::warning:
      return selection == Selection::release_8 ? "Warning" : "warning";
    case PythonStatus::error:
      return "error";
    case PythonStatus::skip:
      return "SKIP";
    case PythonStatus::none:
      break;
  }
  return " ";
}

std::string_view verdict_word(PrecheckVerdict verdict) {
  constexpr std::string_view kNames[] = {"", "pass", "skip", "warning", "error"};
  return kNames[static_cast<std::size_t>(verdict)];
}

}  // namespace msprobe::precheck
