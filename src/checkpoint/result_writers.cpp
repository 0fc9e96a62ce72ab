// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "checkpoint/compare.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::string_view kError = "error";

void write_measure(JsonWriter& json, const ParameterResult& result, const std::optional<double>& measure) {
  if (result.status == PairStatus::unreadable) {
    json.value(kError);
  } else if (result.compared && measure) {
    json.value(*measure);
  } else {
    json.null();
  }
}

/// Writes the values of both sides, or one value if they are equal.
template <typename Value>
void write_both(JsonWriter& json, const Value& first, const Value& second) {
  if (first == second) {
    json.value(first);
  } else {
    json.value(std::array<Value, 2>{first, second});
  }
}

class DetailsTable final : public report::Table {
 public:
  explicit DetailsTable(const CheckpointReport& report) : report_(report) {}

  const std::vector<std::string>& columns() const override {
    static const std::vector<std::string> names = report::columns_of(
        "Name,Status,L2,Relative L2,Cosine,MaxAbsErr,MaxUlp,Bitwise Equal,Unequal Elements,"
        "First Unequal,First Unequal At,Shape 1,Shape 2,Dtype 1,Dtype 2,NaN 1,NaN 2,Inf 1,Inf 2,"
        "Zero 1,Zero 2,Denormal 1,Denormal 2,Relation,Note");
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
    const auto add = [&](bool there, report::Cell value) {
      cells.push_back(there ? value : report::Cell(report::Text{}));
    };
    const auto count = [&](std::uint64_t value) {
      if (!result.compared || value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
        add(result.compared, static_cast<std::int64_t>(value));
      } else {
        // The distance of float64 numbers with opposite signs needs all 64 bits.
        const std::string_view digits = scratch.keep(std::to_string(value));
        cells.emplace_back(report::Structured{digits, digits});
      }
    };
    text(valid_utf8(result.name));
    text(std::string(status_name(result.status)));
    add(result.compared, metrics.l2);
    add(result.compared, metrics.relative_l2);
    add(result.compared && metrics.cosine, metrics.cosine.value_or(0));
    add(result.compared, metrics.max_abs);
    if (metrics.max_ulp) {
      count(*metrics.max_ulp);
    } else {
      text("");
    }
    add(result.compared, metrics.bitwise_equal);
    count(metrics.unequal);
    add(result.compared && metrics.first_unequal >= 0, metrics.first_unequal);
    text(result.compared && metrics.first_unequal >= 0 ? shape_text(result.first_place) : "");
    text(result.first_shape ? shape_text(*result.first_shape) : "");
    text(result.second_shape ? shape_text(*result.second_shape) : "");
    text(result.first_dtype);
    text(result.second_dtype);
    for (const auto member :
         {&ElementCounts::nan, &ElementCounts::infinite, &ElementCounts::zero, &ElementCounts::denormal}) {
      count(metrics.first.*member);
      count(metrics.second.*member);
    }
    text(valid_utf8(result.relation.text));
    text(valid_utf8(all_notes(result)));
  }

 private:
  const CheckpointReport& report_;
};

}  // namespace

std::string similarity_json(const CheckpointReport& report) {
  JsonWriter json({.indent = 4});
  json.open_object();
  for (const ParameterResult& result : report.results) {
    if (is_one_sided(result.status)) continue;
    json.open_object(valid_utf8(result.name));
    json.key("l2");
    write_measure(json, result, result.metrics.l2);
    json.key("cos");
    write_measure(json, result, result.metrics.cosine);
    if (result.first_shape && result.second_shape) {
      json.key("numel");
      write_both(json, numel_of(*result.first_shape), numel_of(*result.second_shape));
      json.key("shape");
      write_both(json, *result.first_shape, *result.second_shape);
    } else {
      json.member("numel", kError);
      json.member("shape", kError);
    }
    if (!result.relation.text.empty()) json.member("relation", valid_utf8(result.relation.text));
    json.close();
  }
  json.close();
  return json.take();
}

std::unique_ptr<report::Table> details_table(const CheckpointReport& report) {
  return std::make_unique<DetailsTable>(report);
}

}  // namespace msprobe::checkpoint
