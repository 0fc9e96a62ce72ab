// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/compare.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "report/table.hpp"

namespace msprobe::checkpoint::compare_test {
namespace {

ParameterResult result_of(const std::string& name, PairStatus status) {
  ParameterResult result;
  result.name = name;
  result.status = status;
  result.first_shape = Shape{2, 3};
  result.second_shape = Shape{2, 3};
  result.compared = status != PairStatus::shapes_differ && status != PairStatus::unreadable;
  return result;
}

CheckpointReport report_of(std::vector<ParameterResult> results) {
  CheckpointReport report;
  report.first = {"one", "PyTorch file", 1};
  report.second = {"two", "safetensors", 1};
  report.results = std::move(results);
  return report;
}

}  // namespace

TEST_CASE("the JSON is laid out as Python's json.dump with an indent of 4") {
  ParameterResult plain = result_of("a", PairStatus::different);
  plain.metrics.l2 = 0.1;
  plain.metrics.cosine = 1.0;
  ParameterResult odd = result_of("b\"\n\xc3\xa9", PairStatus::shapes_differ);
  odd.second_shape = Shape{4, 2};
  ParameterResult scalar = result_of("c", PairStatus::equal);
  scalar.first_shape = Shape{};
  scalar.second_shape = Shape{};
  scalar.metrics.l2 = std::numeric_limits<double>::infinity();
  scalar.metrics.cosine.reset();
  ParameterResult broken = result_of("d", PairStatus::unreadable);
  ParameterResult single = result_of("e", PairStatus::only_first);
  const std::string expected = R"({
    "a": {
        "l2": 0.1,
        "cos": 1.0,
        "numel": 6,
        "shape": [
            2,
            3
        ]
    },
    "b\"\n\u00e9": {
        "l2": null,
        "cos": null,
        "numel": [
            6,
            8
        ],
        "shape": [
            [
                2,
                3
            ],
            [
                4,
                2
            ]
        ]
    },
    "c": {
        "l2": Infinity,
        "cos": null,
        "numel": 1,
        "shape": []
    },
    "d": {
        "l2": "error",
        "cos": "error",
        "numel": 6,
        "shape": [
            2,
            3
        ]
    }
})";
  CHECK(similarity_json(report_of({plain, odd, scalar, broken, single})) == expected);
  CHECK(similarity_json(report_of({single})) == "{}");
}

TEST_CASE("the summary counts, and names what matters") {
  ParameterResult different = result_of("layers.3.w", PairStatus::different);
  different.metrics.l2 = 0.5;
  different.metrics.relative_l2 = 0.25;
  different.metrics.max_abs = 0.125;
  different.metrics.unequal = 4;
  different.first_place = {1, 2};
  ParameterResult noted = result_of("norm\x1b[31m", PairStatus::equal);
  noted.note = "its copy differs";
  std::vector<ParameterResult> results = {different, noted};
  for (int i = 0; i < 7; ++i)
    results.push_back(result_of("only" + std::to_string(i), PairStatus::only_second));
  const std::string text = render_summary(report_of(results), false);
  CHECK(text.find("one (PyTorch file) against two (safetensors)\n") == 0);
  CHECK(text.find("2 parameters in both: 1 equal bit for bit, 1 different\n") != std::string::npos);
  CHECK(text.find("different  layers.3.w  relative 0.25  largest 0.125  4 of 6  first at [1, 2]") !=
        std::string::npos);
  CHECK(text.find("7 only in the second: only0, only1, only2, only3, only4 and 2 more") != std::string::npos);
  CHECK(text.find("its copy differs") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("what counts as a finding") {
  CHECK(!report_of({result_of("a", PairStatus::close)}).any_different());
  CHECK(report_of({result_of("a", PairStatus::close)}).any_unequal());
  CHECK(report_of({result_of("a", PairStatus::same_values)}).any_unequal());
  CHECK(!report_of({result_of("a", PairStatus::equal)}).any_unequal());
  CHECK(report_of({result_of("a", PairStatus::rounded)}).any_unequal());
  CHECK(!report_of({result_of("a", PairStatus::rounded)}).any_different());
  ParameterResult copies = result_of("a", PairStatus::copies_differ);
  copies.copies_differ = true;
  CHECK(report_of({copies}).any_different());
  CHECK(report_of({result_of("a", PairStatus::shapes_differ)}).any_different());
  CHECK(report_of({result_of("a", PairStatus::only_first)}).any_missing());
  CHECK(report_of({result_of("a", PairStatus::only_first)}).any_different());
  // The program computes these values from the configuration, so they may be missing.
  CHECK(report_of({result_of("rotary_emb.inv_freq", PairStatus::only_first)}).any_missing());
  CHECK(!report_of({result_of("rotary_emb.inv_freq", PairStatus::only_first)}).any_unequal());
}

TEST_CASE("the table of details has a cell for every column") {
  const CheckpointReport report =
      report_of({result_of("a", PairStatus::equal), result_of("b", PairStatus::unreadable)});
  const auto table = details_table(report);
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (std::size_t i = 0; i < table->rows(); ++i) {
    table->row(i, cells, scratch);
    CHECK(cells.size() == table->columns().size());
  }
  CHECK(table->severity(1) == report::Severity::error);
}

TEST_CASE("a distance of more than 63 bits keeps its sign") {
  ParameterResult far = result_of("a", PairStatus::different);
  far.metrics.max_ulp = 0xffe0000000000000;  // of the largest doubles, one of them negative
  far.metrics.first_unequal = 5;
  far.first_place = {1, 2};
  const CheckpointReport report = report_of({far});
  const auto table = details_table(report);
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  table->row(0, cells, scratch);
  const auto cell = [&](std::string_view column) {
    const auto& names = table->columns();
    return report::plain_text(
        cells[static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin())]);
  };
  CHECK(cell("MaxUlp") == "18437736874454810624");
  CHECK(cell("First Unequal At") == "[1, 2]");
}

TEST_CASE("NaN has no sign in the summary") {
  ParameterResult bad = result_of("a", PairStatus::different);
  bad.metrics.relative_l2 = -std::numeric_limits<double>::quiet_NaN();
  CHECK(render_summary(report_of({bad}), false).find("relative nan") != std::string::npos);
}

}  // namespace msprobe::checkpoint::compare_test
