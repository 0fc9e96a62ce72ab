// SPDX-License-Identifier: Apache-2.0
// Dumps written in a test, and the steps of a comparison run on them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "measuring/sum_precision.hpp"
#include "pairing/match.hpp"
#include "pairing/rules.hpp"
#include "report/table.hpp"
#include "support/byte_source.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {

/// A side whose `data` holds these members.
inline dump::Side side_of(std::string_view members, std::string_view framework = {}) {
  std::string text = R"({"task": "statistics", )";
  if (!framework.empty()) text += R"("framework": ")" + std::string(framework) + R"(", )";
  return dump::load_side(*memory_source(text + R"("data": {)" + std::string(members) + "}}", "dump.json"));
}

/// A tensor whose four statistics are all `value`; `more` follows them.
inline std::string tensor_json(std::string_view value, std::string_view dtype = "torch.float32",
                               std::string_view shape = "[2, 3]", std::string_view more = {}) {
  std::string text = R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": )";
  text += shape;
  for (const char* key : {"Max", "Min", "Mean", "Norm"})
    text += ", \"" + std::string(key) + "\": " + std::string(value);
  return text + std::string(more) + "}";
}

inline std::string scalar_json(std::string_view type, std::string_view value) {
  return R"({"type": ")" + std::string(type) + R"(", "value": )" + std::string(value) + "}";
}

/// A forward entry.
inline std::string forward_json(std::string_view name, std::string_view inputs, std::string_view outputs) {
  return "\"" + std::string(name) + R"(": {"input_args": [)" + std::string(inputs) + R"(], "output": [)" +
         std::string(outputs) + "]}";
}

inline pairing::Matching match_by_name(const dump::Side& target, const dump::Side& golden) {
  return pairing::match(target, golden, {.by_name = true}, pairing::default_rules());
}

/// Two dumps matched, but not yet judged.
inline verdict::RankResult matched(std::string_view target, std::string_view golden, measuring::Mode mode,
                                   bool python_rules) {
  verdict::RankResult result;
  result.mode = mode;
  if (python_rules) result.python = measuring::python_rules();
  result.framework_frames = pairing::default_rules().framework_frames;
  result.target = side_of(target);
  result.golden = side_of(golden);
  const pairing::Matching matching = match_by_name(result.target, result.golden);
  result.golden_only = matching.golden_only;
  result.rows = matching.pairs;
  result.judgement = verdict::marks_of(result);
  if (mode == measuring::Mode::tensor) result.metrics.resize(result.rows.size());
  if (!python_rules) measuring::learn_precision(result);
  return result;
}

inline verdict::RankResult judged(std::string_view target, std::string_view golden, measuring::Mode mode,
                                  bool python_rules) {
  verdict::RankResult result = matched(target, golden, mode, python_rules);
  result.judgement = verdict::judge(result, pairing::default_rules());
  return result;
}

inline RankRows judged_rows(std::string_view target, std::string_view golden, measuring::Mode mode,
                            bool python_rules) {
  return RankRows(std::make_shared<const verdict::RankResult>(judged(target, golden, mode, python_rules)));
}

inline std::string cell_text(const report::Cell& cell) {
  struct Print {
    std::string operator()(const report::Text& text) const { return std::string(text.value); }
    std::string operator()(const report::Spelled& number) const { return report::plain_text(number); }
    std::string operator()(double number) const { return "number " + std::to_string(number); }
    std::string operator()(std::int64_t number) const { return "integer " + std::to_string(number); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
  };
  return std::visit(Print{}, cell);
}

/// The cell of a row under a column.
inline std::string cell(const report::Table& table, std::size_t row, std::string_view column) {
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  table.row(row, cells, scratch);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (table.columns()[i] == column) return cell_text(cells[i]);
  }
  return "no such column";
}

}  // namespace msprobe::compare
