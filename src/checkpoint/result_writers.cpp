// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/result_writers.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// As Python's json module spells it.
std::string json_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return python_repr(value);
}

std::int64_t numel_of(const Shape& shape) {
  std::int64_t numel = 1;
  for (const std::int64_t length : shape) numel *= length;
  return numel;
}

/// A list as json.dump(indent=4) lays it out, its items already written.
std::string json_list(const std::vector<std::string>& items, int depth) {
  if (items.empty()) return "[]";
  const std::string indent(static_cast<std::size_t>(4 * depth), ' ');
  std::string out = "[\n";
  for (std::size_t i = 0; i < items.size(); ++i) {
    out += indent + "    " + items[i] + (i + 1 < items.size() ? ",\n" : "\n");
  }
  return out + indent + "]";
}

std::string json_shape(const Shape& shape, int depth) {
  std::vector<std::string> items;
  for (const std::int64_t length : shape) items.push_back(std::to_string(length));
  return json_list(items, depth);
}

constexpr const char* kError = "\"error\"";

std::string l2_text(const ParameterResult& result) {
  if (result.status == Status::unreadable) return kError;
  return result.compared ? json_number(result.metrics.l2) : "null";
}

std::string cosine_text(const ParameterResult& result) {
  if (result.status == Status::unreadable) return kError;
  return result.compared && result.metrics.cosine ? json_number(*result.metrics.cosine) : "null";
}

std::string numel_text(const ParameterResult& result) {
  if (!result.first_shape || !result.second_shape) return kError;
  const std::int64_t first = numel_of(*result.first_shape);
  const std::int64_t second = numel_of(*result.second_shape);
  if (first == second) return std::to_string(first);
  return json_list({std::to_string(first), std::to_string(second)}, 2);
}

std::string shape_json(const ParameterResult& result) {
  if (!result.first_shape || !result.second_shape) return kError;
  if (*result.first_shape == *result.second_shape) return json_shape(*result.first_shape, 2);
  return json_list({json_shape(*result.first_shape, 3), json_shape(*result.second_shape, 3)}, 2);
}

report::Severity severity_of(Status status) {
  switch (status) {
    case Status::equal:
    case Status::same_values:
    case Status::close:
      return report::Severity::none;
    case Status::only_first:
    case Status::only_second:
      return report::Severity::warning;
    default:
      return report::Severity::error;
  }
}

class DetailsTable final : public report::Table {
 public:
  explicit DetailsTable(const CompareReport& report) : report_(report) {}

  const std::vector<std::string>& columns() const override {
    static const std::vector<std::string> names = {"Name",          "Status",        "L2",
                                                   "Relative L2",   "Cosine",        "MaxAbsErr",
                                                   "MaxUlp",        "Bitwise Equal", "Unequal Elements",
                                                   "First Unequal", "Shape 1",       "Shape 2",
                                                   "Dtype 1",       "Dtype 2",       "NaN 1",
                                                   "NaN 2",         "Inf 1",         "Inf 2",
                                                   "Zero 1",        "Zero 2",        "Denormal 1",
                                                   "Denormal 2",    "Note"};
    return names;
  }
  std::size_t rows() const override { return report_.results.size(); }
  report::Severity severity(std::size_t index) const override {
    return severity_of(report_.results[index].status);
  }

  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    const ParameterResult& result = report_.results[index];
    const PairMetrics& metrics = result.metrics;
    const auto text = [&](std::string value) {
      cells.emplace_back(report::Text{scratch.keep(std::move(value))});
    };
    const auto real = [&](bool there, double value) {
      if (there) {
        cells.emplace_back(value);
      } else {
        text("");
      }
    };
    const auto count = [&](std::uint64_t value) {
      if (result.compared) {
        cells.emplace_back(static_cast<std::int64_t>(value));
      } else {
        text("");
      }
    };
    text(valid_utf8(result.name));
    text(std::string(status_name(result.status)));
    real(result.compared, metrics.l2);
    real(result.compared, metrics.relative_l2);
    real(result.compared && metrics.cosine, metrics.cosine.value_or(0));
    real(result.compared, metrics.max_abs);
    if (result.compared && metrics.max_ulp) {
      count(*metrics.max_ulp);
    } else {
      text("");
    }
    if (result.compared) {
      cells.emplace_back(metrics.bitwise_equal);
    } else {
      text("");
    }
    count(metrics.unequal);
    if (result.compared && metrics.first_unequal >= 0) {
      cells.emplace_back(metrics.first_unequal);
    } else {
      text("");
    }
    text(result.first_shape ? shape_text(*result.first_shape) : "");
    text(result.second_shape ? shape_text(*result.second_shape) : "");
    text(result.first_dtype);
    text(result.second_dtype);
    for (const auto member :
         {&SideCounts::nan, &SideCounts::infinite, &SideCounts::zero, &SideCounts::denormal}) {
      count(metrics.first.*member);
      count(metrics.second.*member);
    }
    text(valid_utf8(result.note));
  }

 private:
  const CompareReport& report_;
};

}  // namespace

std::string similarity_json(const CompareReport& report) {
  std::string out = "{";
  const char* separator = "\n";
  for (const ParameterResult& result : report.results) {
    if (result.status == Status::only_first || result.status == Status::only_second) continue;
    out += fmt::format(
        "{}    {}: {{\n        \"l2\": {},\n        \"cos\": {},\n        \"numel\": {},\n        \"shape\": "
        "{}\n    }}",
        separator, json_text(result.name), l2_text(result), cosine_text(result), numel_text(result),
        shape_json(result));
    separator = ",\n";
  }
  return out + (out.size() > 1 ? "\n}" : "}");
}

std::unique_ptr<report::Table> details_table(const CompareReport& report) {
  return std::make_unique<DetailsTable>(report);
}

}  // namespace msprobe::checkpoint
