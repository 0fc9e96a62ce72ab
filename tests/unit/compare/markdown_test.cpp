// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/markdown.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_markdown_test {

using namespace msprobe;
using namespace msprobe::compare;

namespace {

/// The file about a comparison of `entries` entries, each of which has one row, which differs.
std::string written(std::size_t entries, const std::string& name) {
  std::string target;
  std::string golden;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::string entry = "Torch." + name + "." + std::to_string(i) + ".forward";
    if (i > 0) target += ",", golden += ",";
    target += forward_json(entry, "", tensor_json("3"));
    golden += forward_json(entry, "", tensor_json("1"));
  }
  const test::ScratchDirectory scratch;
  const std::unique_ptr<Sink> sink = markdown_sink(scratch / "out.md", Existing::refuse);
  TaskPlan plan;
  plan.tasks.resize(1);
  sink->begin(plan);
  CompareReport report;
  report.tasks.resize(1);
  report.tasks[0].label = "rank0";
  report.tasks[0].rows = report.tasks[0].errors = entries;
  sink->take(0, std::make_shared<RankRows>(judged_rows(target, golden, measuring::Mode::statistics, false)),
             report.tasks[0]);
  sink->end(report);
  std::stringstream text;
  text << std::ifstream(scratch / "out.md").rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("markdown: nothing of a name means anything") {
  CHECK(markdown_cell("a|b`c`*d*_e_[f](g)<script>&@user#1\\") ==
        "a\\|b\\`c\\`\\*d\\*\\_e\\_\\[f\\](g)&lt;script&gt;&amp;&#64;user\\#1\\\\");
}

TEST_CASE("markdown: rows that do not fit are counted") {
  const std::string few = written(3, "a");
  CHECK(few.starts_with("**rank0**: 3 rows: 3 error, 0 warning, 0 pass\n\n| Result |"));
  CHECK(few.find("more rows") == std::string::npos);
  const std::string many = written(700, "a");
  CHECK(many.find("\nand 200 more rows\n") != std::string::npos);
  const std::string long_names = written(300, std::string(600, 'x'));
  CHECK(long_names.size() < 60'000);
  CHECK(long_names.find(" more rows\n") != std::string::npos);
}

}  // namespace msprobe::compare_markdown_test
