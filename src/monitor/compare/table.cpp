// SPDX-License-Identifier: Apache-2.0
#include "monitor/compare/table.hpp"

#include <array>
#include <string_view>

#include "monitor/compare/words.hpp"
#include "support/json_writer.hpp"

namespace msprobe::monitor {
namespace {

using report::Cell;
using report::Text;

std::string_view verdict_name(const SeriesResult& result) {
  constexpr std::array<std::string_view, 4> kNames = {"identical", "within fluctuation", "passing", "parted"};
  return result.compared() && !result.unknown() ? kNames[static_cast<std::size_t>(result.course.verdict)]
                                                : "not compared";
}

Cell integer_or_nothing(const std::optional<std::int64_t>& number) {
  return number ? Cell(*number) : Cell(Text{""});
}

Cell count(std::size_t number) {
  return static_cast<std::int64_t>(number);
}

}  // namespace

const std::vector<std::string>& ComparisonTable::columns() const {
  static const std::vector<std::string> kColumns = report::columns_of(
      "Result,Step,Phase,Rank,Quantity,Stage,Name,Micro step,Statistic,First run,Second run,"
      "Times fluctuation,First unequal step,Unequal steps,Steps,Steps of first run alone,"
      "Steps of second run alone,Largest relative difference,Late relative difference,Message");
  return kColumns;
}

void ComparisonTable::row(std::size_t index, std::vector<Cell>& cells, report::Scratch& scratch) const {
  const SeriesResult& result = comparison_.series[index];
  const Course& course = result.course;
  const bool beyond = result.compared() && course.parting != Parting::none;
  const bool unequal = result.compared() && course.unequal > 0;
  const Cell nothing = Text{""};
  cells = {Text{verdict_name(result)},
           beyond ? Cell(result.moment.step) : nothing,
           Text{name_of(result.moment.phase)},
           result.rank,
           Text{result.quantity},
           integer_or_nothing(result.stage),
           Text{result.name},
           integer_or_nothing(result.micro_step),
           Text{result.statistic},
           beyond ? Cell(result.a) : nothing,
           beyond ? Cell(result.b) : nothing,
           beyond && course.parting != Parting::number && course.parting != Parting::onset
               ? Cell(course.times)
               : nothing,
           unequal ? Cell(result.first_unequal) : nothing,
           count(course.unequal),
           count(result.steps),
           count(result.steps_a),
           count(result.steps_b),
           result.compared() ? Cell(course.largest_relative) : nothing,
           result.compared() ? Cell(course.late_relative) : nothing,
           Text{scratch.keep(message_of(result))}};
}

report::Severity ComparisonTable::severity(std::size_t index) const {
  const SeriesResult& result = comparison_.series[index];
  if (result.parted()) return report::Severity::error;
  const bool doubtful =
      !result.complete() || result.course.verdict == PartingVerdict::passing || result.course.not_finite > 0;
  return doubtful ? report::Severity::warning : report::Severity::none;
}

std::optional<std::vector<std::string>> ComparisonTable::objects() const {
  JsonWriter json({.compact = true, .text = JsonText::utf8});
  json.open_object();
  json.member("kind", "summary");
  json.member("answer", headline(comparison_));
  json.member("cause", cause(comparison_));
  json.member("parted", comparison_.parted);
  json.member("passing", comparison_.passing);
  json.member("within_fluctuation", comparison_.unequal);
  json.member("identical", comparison_.identical);
  json.member("not_compared", comparison_.not_compared);
  json.member("cut_short", comparison_.cut_short);
  json.member("one_run_alone", comparison_.alone);
  json.member("first_step", comparison_.from);
  json.member("last_step", comparison_.to);
  json.close();
  return std::vector<std::string>{json.take()};
}

}  // namespace msprobe::monitor
