// SPDX-License-Identifier: Apache-2.0
#include "compare/atb/atb_compare.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/error.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_atb_compare_test {

using namespace msprobe;
using namespace msprobe::compare;
using doctest::Contains;

namespace {

constexpr const char* kHeader = "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o\n";

std::string row(const std::string& max, const std::string& tensor = "N/A", const std::string& op = "M/L",
                const std::string& ids = "0_3") {
  return "0_1,0," + op + ",X," + ids + ",input,0,float,nd,\"2,3\"," + max + ",0,1,2," + tensor + "\n";
}

AtbSide read(const std::string& text) {
  return read_atb_csv(*memory_source(text, "statistic.csv"));
}

struct Compared {
  std::shared_ptr<const Rows> rows;
  std::vector<std::string> one_sided;
};

Compared compared(const std::string& target, const std::string& golden) {
  test::ScratchDirectory scratch;
  for (const char* side : {"t", "g"}) std::filesystem::create_directories(scratch / side);
  test::put_file(scratch / "t/statistic.csv", kHeader + target);
  test::put_file(scratch / "g/statistic.csv", kHeader + golden);
  const TaskPlan plan = plan_atb(scratch / "t", scratch / "g", nullptr);
  REQUIRE(plan.tasks.size() == 1);
  return {plan.tasks[0].run(), plan.one_sided};
}

std::string cell_of(const Compared& result, std::size_t index, const char* column) {
  return cell(*result.rows, index, column);
}

}  // namespace

TEST_CASE("atb: rows are named by scope and ids, others are left out and counted") {
  const AtbSide side =
      read(kHeader + row("1") + row("1", "N/A", "M/L", "0") + "short,row\n" + row("1", "nowhere/x.bin") +
           row("1", "/p/atb_dump_data/data/0_1/7/0_M/after/x.bin"));
  CHECK_FALSE(side.tensors);
  CHECK(side.skipped == 3);
  REQUIRE(side.items.size() == 2);
  CHECK(side.items[0].name == "0_M/3_L/input.0");
  CHECK(side.items[0].tensor.empty());
  CHECK(side.items[1].tensor == "0_M/after/x.bin");
}

TEST_CASE("atb: a file without rows of a dump is refused") {
  CHECK_THROWS_WITH_AS(read(""), Contains("15 columns"), FormatError);
  CHECK_THROWS_WITH_AS(read(kHeader), Contains("15 columns"), FormatError);
  CHECK_THROWS_WITH_AS(read("a\nb\n"), Contains("statistic.csv"), FormatError);
  CHECK_THROWS_AS(compared(row("1"), row("1", "/p/atb_dump_data/data/0_1/7/x.bin")), FormatError);
}

TEST_CASE("atb: differences of statistics as text") {
  CHECK(cell_of(compared(row("3"), row("2")), 0, "Max Diff") == "1.0");
  CHECK(cell_of(compared(row("3"), row("-2")), 0, "Relative Err of Max(%)") == "250.0");
  CHECK(cell_of(compared(row("3"), row("3")), 0, "Relative Err of Max(%)") == "0.0");
  CHECK(cell_of(compared(row("3"), row("0")), 0, "Relative Err of Max(%)") == "N/A");
  CHECK(cell_of(compared(row("N/A"), row("0")), 0, "Max Diff") == "N/A");
}

TEST_CASE("atb: repeated rows pair one after another") {
  const std::string twice = row("1") + row("2");
  const Compared pairs = compared(twice, twice + row("3"));
  REQUIRE(pairs.rows->rows() == 2);
  CHECK(cell_of(pairs, 0, "Max Diff") == "0.0");
  CHECK(cell_of(pairs, 1, "Golden Max") == "2");
}

TEST_CASE("atb: rows of one side only are listed, a difference of more than half is an error") {
  const Compared result = compared(row("1.6") + row("1", "N/A", "M/O"), row("1"));
  REQUIRE(result.one_sided.size() == 1);
  CHECK(result.one_sided[0] == "0_M/3_O/input.0: only in target");
  CHECK(result.rows->facts(0).verdict == verdict::Verdict::error);
  CHECK(compared(row("1.4"), row("1")).rows->facts(0).verdict == verdict::Verdict::pass);
}

}  // namespace msprobe::compare_atb_compare_test
