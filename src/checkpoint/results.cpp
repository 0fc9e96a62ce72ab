// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "checkpoint/compare.hpp"
#include "checkpoint/other_names.hpp"
#include "report/terminal.hpp"
#include "report/worst.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

constexpr std::size_t kWorst = 10;
constexpr std::size_t kNames = 5;

/// How bad a result is, for the order of the worst: parameters that cannot be compared come first.
double badness(const ParameterResult& result) {
  if (!result.compared) return std::numeric_limits<double>::infinity();
  return std::isnan(result.metrics.relative_l2) ? std::numeric_limits<double>::infinity()
                                                : result.metrics.relative_l2;
}

/// NaN and infinities have no distance that could be the largest, so their counts are shown.
std::string largest_text(const PairMetrics& metrics) {
  const auto count = [](const ElementCounts& first, const ElementCounts& second, auto member,
                        const char* what) {
    return first.*member == second.*member ? std::string()
                                           : fmt::format("{} {} against {}", human_count(first.*member), what,
                                                         human_count(second.*member));
  };
  std::string text = count(metrics.first, metrics.second, &ElementCounts::nan, "NaN");
  if (text.empty()) text = count(metrics.first, metrics.second, &ElementCounts::infinite, "inf");
  return text.empty() ? fmt::format("largest {:.4g}", metrics.max_abs) : text;
}

/// The cells after status and name.
std::vector<std::string> measure_cells(const ParameterResult& result) {
  if (result.status == PairStatus::unreadable || result.status == PairStatus::copies_differ)
    return {"see the note", "", "", ""};
  if (result.status == PairStatus::shapes_differ) {
    return {fmt::format("{} against {}", result.first_shape ? shape_text(*result.first_shape) : "?",
                        result.second_shape ? shape_text(*result.second_shape) : "?"),
            "", "", ""};
  }
  const double relative = result.metrics.relative_l2;
  return {"relative " + short_number(relative, 3), largest_text(result.metrics),
          fmt::format("{} of {}", human_count(result.metrics.unequal),
                      human_count(static_cast<std::uint64_t>(numel_of(*result.first_shape)))),
          "first at " + shape_text(result.first_place)};
}

std::string counts(const CheckpointReport& report, bool color) {
  const auto count = [&](PairStatus status) { return report.count(status); };
  const std::size_t pairs =
      report.results.size() - count(PairStatus::only_first) - count(PairStatus::only_second);
  std::string line = fmt::format("{} parameters in both: {} equal bit for bit", human_count(pairs),
                                 human_count(count(PairStatus::equal)));
  const auto part = [&](PairStatus status, const char* what) {
    const std::size_t n = count(status);
    if (n != 0) line += ", " + report::count_text(n, what, severity_of(status), color);
  };
  part(PairStatus::same_values, "with equal values");
  part(PairStatus::rounded, "equal after rounding to the narrower type");
  part(PairStatus::within_step, "equal within half a step of the format");
  part(PairStatus::close, "close");
  part(PairStatus::different, "different");
  part(PairStatus::shapes_differ, "with different shapes");
  part(PairStatus::copies_differ, "with differing copies");
  part(PairStatus::unreadable, "not comparable");
  return line;
}

std::string names_of(const CheckpointReport& report, PairStatus status) {
  std::string line;
  std::size_t shown = 0;
  const std::size_t all = report.count(status);
  for (const ParameterResult& result : report.results) {
    if (result.status != status) continue;
    if (shown++ == kNames) break;
    line += (line.empty() ? "" : ", ") + display(result.name);
  }
  if (all > kNames) line += fmt::format(" and {} more", human_count(all - kNames));
  return line;
}

/// One line for all weights whose differences a search for scales explains.
std::string searched_text(const CheckpointReport& report) {
  std::size_t count = 0;
  double share = 0;
  double farthest = 0;
  for (const ParameterResult& result : report.results) {
    if (!result.steps.as_searched || result.status != PairStatus::close) continue;
    ++count;
    const auto numel = static_cast<double>(numel_of(*result.first_shape));
    share = std::max(share, static_cast<double>(result.steps.beyond) / numel);
    farthest = std::max(farthest, result.steps.farthest_of_chunk);
  }
  if (count == 0) return "";
  return fmt::format(
      "  {} close, as a quantizer that searches for scales leaves them: at most {} % of their elements are "
      "further apart than half a step of the format, up to {} half steps\n",
      human_count(count), short_number(share * 100, 2), short_number(farthest, 3));
}

/// The order of the worst; results that weigh the same stay in the order of the model.
bool is_worse(const ParameterResult* a, const ParameterResult* b) {
  if (severity_of(a->status) != severity_of(b->status))
    return severity_of(a->status) > severity_of(b->status);
  return badness(*a) != badness(*b) ? badness(*a) > badness(*b) : a < b;
}

std::string worst(const CheckpointReport& report, bool color) {
  report::Worst<const ParameterResult*, decltype(&is_worse)> bad(kWorst, is_worse);
  for (const ParameterResult& result : report.results) {
    if (!is_one_sided(result.status) && result.status != PairStatus::equal &&
        result.status != PairStatus::same_values && result.status != PairStatus::rounded &&
        result.status != PairStatus::within_step && !result.steps.as_searched)
      bad.add(&result);
  }
  std::vector<report::WorstLine> lines;
  for (const ParameterResult* result : bad.take()) {
    report::WorstLine& line = lines.emplace_back();
    line.severity = severity_of(result->status);
    line.cells = {std::string(status_name(result->status)), result->name};
    for (std::string& cell : measure_cells(*result)) line.cells.push_back(std::move(cell));
  }
  return lines.empty() ? "" : report::render_worst(std::move(lines), {}, color);
}

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
        cells.emplace_back(report::Text{digits, digits});
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

std::string render_summary(const CheckpointReport& report, bool color) {
  std::string out = fmt::format("{} ({}) against {} ({})\n", display(report.first.path), report.first.format,
                                display(report.second.path), report.second.format);
  for (const std::string& remark : report.remarks) out += "  " + remark + "\n";
  out += "  " + counts(report, color) + "\n" + searched_text(report);
  const std::vector<std::string> relations = relation_lines(report.results);
  if (!relations.empty()) out += "  how they differ:\n";
  for (std::size_t i = 0; i < std::min(relations.size(), kWorst); ++i) out += "    " + relations[i] + "\n";
  if (relations.size() > kWorst)
    out += fmt::format("    and {} more; --details has them all\n", relations.size() - kWorst);
  out += worst(report, color);
  std::size_t notes = 0;
  for (const ParameterResult& result : report.results) {
    const std::string note = result.steps.as_searched ? result.note : all_notes(result);
    if (note.empty() || ++notes > kWorst) continue;
    out += "  " + report::paint("note: ", report::Color::yellow, color) + display(result.name) + ": " + note +
           "\n";
  }
  if (notes > kWorst) out += fmt::format("  and {} more notes; --details has them all\n", notes - kWorst);
  for (const PairStatus status : {PairStatus::only_first, PairStatus::only_second}) {
    if (report.count(status) == 0) continue;
    const std::string label = fmt::format("{} {}: ", human_count(report.count(status)), status_name(status));
    out += "  " + report::paint(label, report::color_of(severity_of(status)), color) +
           names_of(report, status) + "\n";
  }
  for (const std::string& file : report.files) out += "  written: " + display(file) + "\n";
  return out;
}

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
