// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "compare/static_graph/graph_compare.hpp"
#include "compare/static_graph/graph_files.hpp"
#include "compare/static_graph/graph_rows.hpp"
#include "compare/static_graph/graph_tree.hpp"
#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "unit/compare/dumps.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::compare_static_graph_test {

using namespace msprobe;
using namespace msprobe::compare;
using Lines = std::vector<std::string>;
using doctest::Contains;
using measuring::Mode;
using verdict::Verdict;

namespace {

/// Fields joined by `|`, rows as elements.
Lines rows_of(std::string_view csv) {
  const auto file = memory_source(csv, "x.csv");
  sheets::CsvRows rows(*file);
  Lines out;
  std::vector<std::string> fields;
  while (rows.next(fields)) {
    std::string line = std::to_string(rows.line()) + ":";
    for (const std::string& field : fields) line += field + "|";
    out.push_back(line);
  }
  return out;
}

constexpr const char* kHeader =
    "Op Type,Op Name,Task ID,Stream ID,Timestamp,IO,Slot,Data Size,Data Type,Shape,Max Value,Min Value,"
    "Avg Value,L2Norm Value\n";

StaticGraphSide read_statistics(const std::string& text) {
  StaticGraphSide side;
  side.mode = Mode::statistics;
  read_statistic_csv(*memory_source(text, "statistic.csv"), side);
  return side;
}

std::string key_of(std::string_view name) {
  GraphItem item;
  return read_graph_name(name, item) ? item.key + " @" + item.time : "none";
}

/// A row of a statistic.csv.
GraphItem item(double max, const std::string& shape = "(2,)", const std::string& dtype = "float32") {
  GraphItem made;
  made.key = "op.0.output.0";
  made.file = "f";
  made.dtype = dtype;
  made.shape = shape;
  made.statistics = {max, 0, 0, 1};
  return made;
}

std::string cell_of(const ListedRow& row, Mode mode, std::string_view column) {
  RowList list;
  list.columns = graph_columns(mode);
  list.rows.push_back(row);
  return cell(ListRows(mode, list), 0, column);
}

std::string reached(double target, double golden) {
  const GraphItem n = item(target);
  const GraphItem b = item(golden);
  return cell_of(statistics_row(&n, &b), Mode::statistics, "Accuracy Reached or Not");
}

TaskPlan planned(const std::string& target, const std::string& golden, const GraphSelection& selection = {}) {
  return plan_static_graphs({target, dump::find_graph_folders(target)},
                            {golden, dump::find_graph_folders(golden)}, selection, nullptr);
}

}  // namespace

TEST_CASE("csv rows: quotes, line ends, blank lines, byte order mark") {
  CHECK(rows_of("a,b\n1,\"2,3\"\n") == Lines{"1:a|b|", "2:1|2,3|"});
  CHECK(rows_of("\xEF\xBB\xBF"
                "a\r\n\r\n\"x\"\"y\nz\",\r\nlast") == Lines{"1:a|", "3:x\"y\nz||", "5:last|"});
  CHECK(rows_of("").empty());
  CHECK(rows_of("\n\n").empty());
  CHECK(rows_of("a\rb\n") == Lines{"1:a\rb|"});  // no line end: part of the text
}

TEST_CASE("csv rows: what is no csv is refused with its line") {
  CHECK_THROWS_WITH_AS(rows_of("a\n\"b"), Contains("line 2: a quote is not closed"), FormatError);
  CHECK_THROWS_WITH_AS(rows_of("\"a\"b"), Contains("text after a closing quote"), FormatError);
  CHECK_THROWS_WITH_AS(rows_of(std::string_view("a\0b", 3)), Contains("NUL"), FormatError);
  CHECK_THROWS_WITH_AS(rows_of(std::string(sheets::CsvRows::kMaxRowBytes + 1, 'x')),
                       Contains("longer than 1 MiB"), FormatError);
  CHECK_THROWS_WITH_AS(rows_of(std::string(sheets::CsvRows::kMaxFields, ',')), Contains("4096 columns"),
                       FormatError);
}

TEST_CASE("static graph: lists of ranks and steps") {
  const NumberList list = NumberList::parse("--rank", "0, 2-4,7");
  for (const int number : {0, 2, 3, 4, 7}) CHECK(list.contains(number));
  for (const int number : {1, 5, 6, 8}) CHECK_FALSE(list.contains(number));
  CHECK(NumberList::parse("--rank", "").contains(12));
  for (const char* wrong : {"a", "1,", ",1", "-1", "3-1", "1-", "1.5", "1000001", "99999999999999999999"}) {
    CHECK_THROWS_WITH_AS(NumberList::parse("--rank", wrong), Contains("--rank"), UsageError);
  }
}

TEST_CASE("static graph: rank and step of a folder") {
  CHECK(dump::graph_place("/d/rank_3/Net/0/7") == dump::GraphPlace{3, 7});
  CHECK(dump::graph_place("/d/3/Net/0/7") == dump::GraphPlace{3, 7});
  CHECK(dump::graph_place("/d/x/5/Net/7") == dump::GraphPlace{5, 7});
  CHECK(dump::graph_place("rank_12/Net/0/1") == dump::GraphPlace{12, 1});
  CHECK_FALSE(dump::graph_place("/d/rank_3/Net/0/step"));
  CHECK_FALSE(dump::graph_place("/d/x/y/z/1"));
  CHECK_FALSE(dump::graph_place("0/1"));
  CHECK_FALSE(dump::graph_place(""));
}

TEST_CASE("static graph: names of npy files") {
  CHECK(key_of("Add.op.0.1.10.output.0.DefaultFormat.npy") == "op.0.output.0 @10");
  CHECK(key_of("Add.op.0.1.0010.5.output.1.2.0.DefaultFormat.npy") == "op.0.output.1.2.0 @10");
  CHECK(key_of("Add.op.0.1.10.input.3.NCHW.npy") == "op.0.input.3 @10");
  for (const char* wrong : {"Add.op.0.1.10.output.0.npy", "Add.op.0.1.x.output.0.F.npy", "a.npy", "",
                            "Add.op.0.1.10.inout.0.F.npy", "Add..0.1.10.output.0.F.npy",
                            "Add.op.0.1.10.output.x.0.F.npy", "Add.op.0.1.10.output.0.F.npz"}) {
    CHECK(key_of(wrong) == "none");
  }
  std::string endless = "Add.op.0.1.10";
  for (int i = 0; i < 10000; ++i) endless += ".1";
  CHECK(key_of(endless + ".output.0.F.npy") == "none");
}

TEST_CASE("static graph: rows of a statistic.csv") {
  const StaticGraphSide side = read_statistics(
      std::string(kHeader) + "Add,op,0,1,7,output,0,24,float32,\"(2,3)\",null,False,True,-inf\n");
  REQUIRE(side.items.size() == 1);
  const GraphItem& row = side.items[0];
  CHECK(row.key == "op.0.output.0");
  CHECK(row.time == "7");
  CHECK(row.dtype == "float32");
  CHECK(row.shape == "(2,3)");
  CHECK(row.statistics[dump::kMax] == 0);
  CHECK(row.statistics[dump::kMin] == 0);
  CHECK(row.statistics[dump::kMean] == 1);
  CHECK(row.statistics[dump::kNorm] == -INFINITY);
  CHECK(side.gaps.empty());
}

TEST_CASE("static graph: columns are found by the header, missing ones are NaN and told") {
  const StaticGraphSide side = read_statistics(
      "a,b,c,d,e,f,g,h,L2Norm Value,Shape,Max Value,x,y\nAdd,op,0,1,7,output,0,24,3,\"(1,)\",5,,\n");
  REQUIRE(side.items.size() == 1);
  CHECK(side.items[0].statistics[dump::kMax] == 5);
  CHECK(side.items[0].statistics[dump::kNorm] == 3);
  CHECK(std::isnan(side.items[0].statistics[dump::kMin]));
  CHECK(side.items[0].shape == "(1,)");
  CHECK(side.gaps.size() == 3);  // Data Type, Min Value, Avg Value
}

TEST_CASE("static graph: a statistic.csv that lies is refused with file and line") {
  const auto refused = [](const std::string& row, const char* reason) {
    CHECK_THROWS_WITH_AS(read_statistics(kHeader + row), Contains(reason), FormatError);
    CHECK_THROWS_WITH_AS(read_statistics(kHeader + row), Contains("statistic.csv: line 2"), FormatError);
  };
  refused("Add,op,0,1,7,output,0,24,float32,\"(2,3)\",1,2\n", "fewer than 13 columns");
  refused("Add,op,0,1,7,output,0,24,float32,\"(2,3)\",1,2,3\n", "fewer columns than the header");
  refused("Add,op,0,1,soon,output,0,24,float32,\"(2,3)\",1,2,3,4\n", "'soon' is not a number");
  refused("Add,op,0,1,7,output,0,24,float32,\"(2,3)\",much,2,3,4\n", "Max Value 'much' is not a number");
  CHECK_THROWS_WITH_AS(read_statistics(""), Contains("empty file"), FormatError);
}

TEST_CASE("static graph: the accuracy compares maxima by their size") {
  CHECK(reached(1, 1) == "Yes");
  CHECK(reached(2, 1) == "Yes");  // just below one half
  CHECK(reached(3, 1) == "No");
  CHECK(reached(-3, -1) == "No");
  CHECK(reached(-5, 1) == "No");
  CHECK(reached(INFINITY, 1) == "No");
  CHECK(reached(INFINITY, INFINITY) == "Yes");
  CHECK(reached(NAN, NAN) == "Yes");
  CHECK(reached(NAN, 1) == "No");
}

TEST_CASE("static graph: rows that cannot be compared say why, and are no silent pass") {
  const GraphItem n = item(1);
  const GraphItem b = item(1, "(3,)", "float16");
  const ListedRow row = statistics_row(&n, &b);
  CHECK(row.verdict == Verdict::error);
  CHECK(cell_of(row, Mode::statistics, "Err_message") ==
        "Tensor shapes do not match. Dtype of NPU and bench Tensor do not match. Skipped.");
  const ListedRow target_only = statistics_row(&n, nullptr);
  CHECK(target_only.verdict == Verdict::warning);
  CHECK(target_only.target_only);
  CHECK(cell_of(target_only, Mode::statistics, "Bench Name") == "N/A");
  const ListedRow golden_only = statistics_row(nullptr, &n);
  CHECK(golden_only.golden_only);
  CHECK(cell_of(golden_only, Mode::statistics, "NPU Name") == "N/A");
  const ListedRow scalar = statistics_row(&n, &n);
  CHECK(scalar.verdict == Verdict::pass);
}

TEST_CASE("static graph: repeated kernels pair in the order of their times") {
  test::ScratchDirectory scratch;
  for (const char* side : {"t", "g"}) {
    const std::string folder = scratch / (std::string(side) + "/rank_0/Net/0/1");
    std::filesystem::create_directories(folder);
    const bool target = side[0] == 't';
    const auto row = [](const char* time, const char* max) {
      return std::string("Add,op,0,1,") + time + ",output,0,24,float32,\"(2,)\"," + max + ",0,0,1\n";
    };
    // 9 comes before 10, whatever their texts say.
    test::put_file(folder + "/statistic.csv",
                   kHeader + (target ? row("10", "5") + row("9", "3") : row("100", "3") + row("2000", "5")));
  }
  const TaskPlan plan = planned(scratch / "t", scratch / "g");
  REQUIRE(plan.tasks.size() == 1);
  CHECK(plan.tasks[0].label == "rank 0 step 1");
  const auto rows = plan.tasks[0].run();
  REQUIRE(rows->rows() == 2);
  for (const std::size_t row : {0, 1}) CHECK(rows->facts(row).verdict == Verdict::pass);
}

TEST_CASE("static graph: a broken npy is a row, hashed names are looked up, other modes do not go together") {
  test::ScratchDirectory scratch;
  for (const char* side : {"t", "g"}) {
    const std::string folder = scratch / (std::string(side) + "/rank_0/Net/0/1");
    std::filesystem::create_directories(folder);
    test::put_file(folder + "/12345.npy", "\x93NUMPY");
    test::put_file(folder + "/mapping.csv", "short,long\n12345.npy,Add.op.0.1.10.output.0.F.npy\n");
    test::put_file(folder + "/other.npy", "");
  }
  const TaskPlan plan = planned(scratch / "t", scratch / "g");
  REQUIRE(plan.tasks.size() == 1);
  const auto rows = plan.tasks[0].run();
  REQUIRE(rows->rows() == 1);
  CHECK(rows->note(0).name == "op.0.output.0");
  CHECK(rows->facts(0).unreadable);
  CHECK(rows->facts(0).verdict == Verdict::warning);
  CHECK(rows->note(0).reason.find("12345.npy") != std::string::npos);

  std::filesystem::remove(scratch / "g/rank_0/Net/0/1/12345.npy");
  std::filesystem::remove(scratch / "g/rank_0/Net/0/1/other.npy");
  test::put_file(scratch / "g/rank_0/Net/0/1/statistic.csv", kHeader);
  const TaskPlan mixed = planned(scratch / "t", scratch / "g");
  CHECK_THROWS_WITH_AS(mixed.tasks[0].run(), Contains("has statistic.csv"), FormatError);
}

TEST_CASE("static graph: ranks and steps of one side only are named, none in common is an error") {
  test::ScratchDirectory scratch;
  const auto put = [&](const std::string& folder) {
    std::filesystem::create_directories(scratch / folder);
    test::put_file(scratch / (folder + "/statistic.csv"), kHeader);
  };
  put("t/rank_0/Net/0/1");
  put("t/rank_1/Net/0/1");
  put("g/rank_1/Net/0/1");
  put("g/rank_1/Net/0/2");
  CHECK(planned(scratch / "t", scratch / "g").one_sided ==
        Lines{"rank 0 step 1: only in target", "rank 1 step 2: only in golden"});
  GraphSelection selection;
  selection.ranks = NumberList::parse("--rank", "0");
  CHECK_THROWS_AS(planned(scratch / "t", scratch / "g", selection), FormatError);
  std::filesystem::create_directory_symlink(scratch.path(), scratch / "t/circle");
  CHECK_THROWS_WITH_AS(planned(scratch / "t", scratch / "g"), Contains("nested deeper"), FormatError);
}

}  // namespace msprobe::compare_static_graph_test
