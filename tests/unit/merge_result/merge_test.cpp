// SPDX-License-Identifier: Apache-2.0
#include "merge_result/merge.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "support/error.hpp"
#include "unit/archive/zip_builder.hpp"
#include "unit/sheets/workbooks.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::merge_result_merge_test {

using namespace msprobe;
using namespace msprobe::merge_result;

namespace {

constexpr const char* kHeader =
    "NPU Name,Max diff,Min diff,Mean diff,L2norm diff,MaxRelativeErr,MinRelativeErr,MeanRelativeErr,"
    "NormRelativeErr,NPU max,Bench max,Requires_grad Consistent,Result,Err_message\n";

/// A row of a statistics result whose metrics are all `value`.
std::string row(const std::string& name, const std::string& value, const std::string& npu = "1.0",
                const std::string& bench = "2.0") {
  std::string out = name;
  for (int i = 0; i < 8; ++i) out += "," + value;
  return out + "," + npu + "," + bench + ",True,pass,[]\n";
}

class Folder {
 public:
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name, std::ios::binary) << text;
  }
  void rank(int number, const std::string& rows, const std::string& header = kHeader) const {
    put("compare_result_rank" + std::to_string(number) + "_20260101000000.csv", header + rows);
  }
  const std::string& path() const { return scratch_.path(); }

 private:
  test::ScratchDirectory scratch_;
};

struct Result {
  std::unique_ptr<Merged> merged;
  MergeReport report;

  /// The rows of an index: `name cell cell; …`
  std::string rows(std::size_t index = 0) const {
    const auto table = merged->table(index);
    std::string out;
    std::vector<report::Cell> cells;
    report::Scratch scratch;
    for (std::size_t i = 0; i < table->rows(); ++i) {
      table->row(i, cells, scratch);
      if (i > 0) out += "; ";
      for (std::size_t k = 0; k < cells.size(); ++k) out += (k > 0 ? " " : "") + text(cells[k]);
    }
    return out;
  }

 private:
  static std::string text(const report::Cell& cell) {
    struct Print {
      std::string operator()(const report::Text& text) const {
        return text.value.empty() ? "-" : std::string(text.value);
      }
      std::string operator()(const report::Spelled& number) const { return report::plain_text(number); }
      std::string operator()(double number) const { return fmt::format("real:{}", number); }
      std::string operator()(std::int64_t number) const { return fmt::format("int:{}", number); }
      std::string operator()(bool value) const { return value ? "true" : "false"; }
    };
    return std::visit(Print{}, cell);
  }
};

Result merged(const Folder& folder, const std::string& config) {
  Result result;
  const MergeConfig read = parse_config(config, "config.yaml");
  MergeInputs inputs = find_inputs(folder.path());
  result.report.warnings = inputs.warnings;
  std::vector<RankValues> ranks;
  for (const RankFiles& files : inputs.ranks) ranks.push_back(read_rank(files, read));
  result.merged = std::make_unique<Merged>(std::move(ranks), result.report);
  return result;
}

std::string complaint(const std::string& config) {
  return test::complaint_about("config.yaml", [&] { parse_config(config, "config.yaml"); });
}

bool warned(const MergeReport& report, const std::string& words) {
  for (const std::string& warning : report.warnings) {
    if (warning.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("configurations") {
  const MergeConfig config =
      parse_config("api: [Torch.a, 'Torch.b', Torch.a]\ncompare_index:\n- Max diff\n", "c.yaml");
  CHECK(config.apis == std::vector<std::string>{"Torch.a", "Torch.b"});
  CHECK(config.indices == std::vector<std::string>{"Max diff"});
  CHECK(parse_config("api: [x]\ncompare_index:\n", "c.yaml").indices.empty());
  CHECK_REFUSED("", "the file is empty");
  CHECK_REFUSED("~", "the file is empty");
  CHECK_REFUSED("compare_index: [Max diff]", "'api' names no operation");
  CHECK_REFUSED("api: []", "'api' names no operation");
  CHECK_REFUSED("api: Torch.a", "line 1: 'api' must be a list of names");
  CHECK_REFUSED("api: [x]\ncompare_index: {a: b}", "'compare_index' must be a list of names");
  CHECK_REFUSED("api: [[x]]", "'api' must be a list of names");
  CHECK_REFUSED("api: [x]\napi: [y]", "'api' appears twice");
  CHECK_REFUSED("api: [x]\nstep: 1", "unknown key 'step'");
  CHECK_REFUSED("- api", "'api' and 'compare_index' are needed");
  CHECK_REFUSED("api: [x", "config.yaml: ");
  CHECK_REFUSED("a: &a [x, x]\nb: &b [*a, *a, *a]\napi: [*b, *b]", "config.yaml: ");
}

TEST_CASE("rows begin with an api and a dot; the order is that of apis, rows, ranks") {
  const Folder folder;
  folder.rank(10, row("Torch.b.0.input", "3") + row("Torch.new.0", "4"));
  folder.rank(0, row("Torch.b.0.input", "1") + row("Torch.ab.0", "7") + row("My.Torch.b.0", "8") +
                     row("Torch.a.0.input", "2") + row("Torch.b.0.input", "9"));
  folder.rank(2, row("Other.0", "1"));
  const Result result =
      merged(folder, "api: [Torch.a, Torch.b, Torch.new, Torch.b.0]\ncompare_index: [Mean diff]");
  CHECK(result.report.ranks == std::vector<std::int64_t>{0, 2, 10});
  CHECK(result.merged->table(0)->columns() ==
        std::vector<std::string>{"NPU Name", "rank0", "rank2", "rank10"});
  CHECK(result.rows() == "Torch.a.0.input 2 - -; Torch.b.0.input 1 - 3; Torch.new.0 - - 4");
  CHECK(warned(result.report, "rank2 has no row of Torch.b.0"));
  CHECK_FALSE(warned(result.report, "rank0 has no row of Torch.b.0"));
}

TEST_CASE("all indices if none is named; what is no number gives way to both maxima") {
  const Folder folder;
  folder.rank(
      0, row("Torch.a.0", "N/A", "5", "N/A") + row("Torch.a.1", "Nan", "Nan", "7.0") + row("Torch.a.2", "0"));
  folder.rank(1, row("Torch.a.0", "unsupported") + row("Torch.a.1", "inf") + row("Torch.a.2", "50.0%"));
  const Result result = merged(folder, "api: [Torch.a]");
  CHECK(result.report.indices.size() == 9);
  CHECK(result.report.indices.back() == "Requires_grad Consistent");
  CHECK(result.rows(0) ==
        "Torch.a.0 NPU:5  Bench:N/A NPU:1.0  Bench:2.0; Torch.a.1 NPU:Nan  Bench:7.0 inf; Torch.a.2 0 50.0%");
  CHECK(result.rows(8) == "Torch.a.0 true true; Torch.a.1 true true; Torch.a.2 true true");
}

TEST_CASE("tensor results: numbers stay numbers, infinities texts, tabs of 8.1.1 go") {
  const std::string header = "NPU Name,Cosine,MaxAbsErr,NPU max,Bench max\n";
  const Folder folder;
  folder.rank(0, "Torch.a.0,0.25,3.0,1,1\nTorch.a.1, inf,N/A,1,2\n", header);
  folder.rank(1, "Torch.a.0,1.0,inf\t,1,1\nTorch.a.1,-0.5,2e-07,1,2\n", header);
  const Result result = merged(folder, "api: [Torch.a]");
  CHECK(result.report.indices == std::vector<std::string>{"Cosine", "MaxAbsErr"});
  CHECK(result.rows(0) == "Torch.a.0 real:0.25 int:1; Torch.a.1 inf real:-0.5");
  CHECK(result.rows(1) == "Torch.a.0 int:3 inf; Torch.a.1 NPU:1  Bench:2 real:2e-07");
}

TEST_CASE("columns of a user's own algorithms are indices, as in the Python tool") {
  const std::string header =
      "NPU Name,Cosine,EucDist,MaxAbsErr,MaxRelativeErr,One Thousandth Err Ratio,Five Thousandths Err Ratio,"
      "DTYPES,SNR,NPU max,Bench max,Requires_grad Consistent,Result\n";
  const Folder folder;
  for (const int rank : {0, 1}) {
    folder.rank(rank,
                "Torch.a.0,0.5,0.1,0.2,0.3,1.0,1.0,f32/f32,10.5,1,2,True,pass\n"
                "Torch.a.1,0.5,0.1,0.2,0.3,1.0,1.0,x,unsupported,1,2,True,pass\n",
                header);
  }
  const Result chosen = merged(folder, "api: [Torch.a]\ncompare_index: [SNR, DTYPES, Cosine]");
  CHECK(chosen.rows(0) == "Torch.a.0 real:10.5 real:10.5; Torch.a.1 NPU:1  Bench:2 NPU:1  Bench:2");
  CHECK(chosen.rows(1) == "Torch.a.0 f32/f32 f32/f32; Torch.a.1 x x");
  CHECK(chosen.rows(2) == "Torch.a.0 real:0.5 real:0.5; Torch.a.1 real:0.5 real:0.5");
  CHECK(merged(folder, "api: [Torch.a]").report.indices ==
        std::vector<std::string>{"Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr",
                                 "One Thousandth Err Ratio", "Five Thousandths Err Ratio", "DTYPES", "SNR",
                                 "Requires_grad Consistent"});
  CHECK_THROWS_WITH_AS(merged(folder, "api: [Torch.a]\ncompare_index: [NPU max]"),
                       doctest::Contains("it has no index 'NPU max'"), FormatError);
}

TEST_CASE("workbooks: maxima of a column of numbers are all real if one is") {
  const auto book = [](const std::string& last) {
    const std::string header =
        "<row><c t='str'><v>NPU Name</v></c><c t='str'><v>Cosine</v></c><c t='str'><v>MaxAbsErr</v></c>"
        "<c t='str'><v>NPU max</v></c><c t='str'><v>Bench max</v></c></row>";
    const auto data = [](const std::string& name, const std::string& npu) {
      return "<row><c t='str'><v>" + name + "</v></c><c t='str'><v>N/A</v></c><c><v>0.5</v></c>" + npu +
             "<c><v>3</v></c></row>";
    };
    return sheets::workbook_of(
        sheets::with_rows(header + data("Torch.a.0", "<c><v>5</v></c>") + data("Torch.b.0", last)));
  };
  const Folder folder;
  folder.put("compare_result_rank0_20260101000000.xlsx", book("<c><v>0.5</v></c>"));
  folder.put("compare_result_rank1-rank1_20260101000000.xlsx", book("<c t='str'><v>Nan</v></c>"));
  const Result result = merged(folder, "api: [Torch.a]\ncompare_index: [Cosine, MaxAbsErr]");
  CHECK(result.rows(0) == "Torch.a.0 NPU:5.0  Bench:3 NPU:5  Bench:3");
  CHECK(result.rows(1) == "Torch.a.0 real:0.5 real:0.5");
}

TEST_CASE("a rank that cannot be merged is left out alone, with the reason") {
  const Folder folder;
  folder.rank(0, "Torch.a.0,x,x\n", "NPU Name,NPU MD5,BENCH MD5\n");
  folder.rank(1, row("Torch.a.0", "1"));
  folder.rank(2, "Torch.a.0,1\n", "NPU Name,Value\n");
  folder.rank(3, "\"Torch.a.0", kHeader);
  folder.rank(4, row("Torch.a.0", "4"));
  folder.rank(5, "", "");
  folder.rank(6, "Torch.a.0,1,1,1,1\n", "NPU Name,Cosine,MaxAbsErr,NPU max,Bench max\n");
  folder.rank(7, "Torch.a.0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n");
  const Result result = merged(folder, "api: [Torch.a]");
  CHECK(result.report.ranks == std::vector<std::int64_t>{1, 4});
  CHECK(result.rows() == "Torch.a.0 1 4");
  CHECK(result.report.any_unreadable);
  CHECK(warned(result.report, "rank0 is left out: it compares checksums"));
  CHECK(warned(result.report, "rank2 is left out: it does not have the columns"));
  CHECK(warned(result.report, "a quote is not closed"));
  CHECK(warned(result.report, "rank5 is left out: it is empty"));
  CHECK(warned(result.report, "rank6 is left out: its indices differ"));
  CHECK(warned(result.report, "a row has more cells than the header"));
  CHECK_THROWS_AS(merged(folder, "api: [Torch.a]\ncompare_index: [Result]"), FormatError);
}

TEST_CASE("files: parts in the order of their numbers, the newest result, other names told") {
  const Folder folder;
  std::string parts;
  for (const int part : {10, 2, 1}) {
    folder.put("compare_result_rank0_20260101000000_part_" + std::to_string(part) + ".csv",
               kHeader + row("Torch.a." + std::to_string(part), "1"));
  }
  folder.rank(1, row("Torch.a.1", "old"));
  folder.put("compare_result_rank1_20260102000000.csv", kHeader + row("Torch.a.1", "new"));
  folder.put("compare_result_rank1_20260102000000.xlsx", "not read");
  folder.put("compare_result_rank_20260101000000.csv", "");
  folder.put("compare_result_rank2-rank3_20260101000000.csv", "");
  folder.put("compare_result_rank99999999999999999999_20260101000000.csv", "");
  folder.put("notes.txt", "");
  const Result result = merged(folder, "api: [Torch.a]\ncompare_index: [Max diff]");
  CHECK(result.rows() == "Torch.a.1 1 new; Torch.a.2 1 -; Torch.a.10 1 -");
  CHECK(warned(result.report, "rank1 has several results"));
  CHECK(warned(result.report,
               "compare_result_rank2-rank3_20260101000000.csv is not a result of a single rank"));
  CHECK(warned(result.report, "compare_result_rank99999999999999999999_20260101000000.csv is not a result"));
  CHECK_FALSE(warned(result.report, "notes"));
  const Folder one;
  one.rank(0, "");
  CHECK_THROWS_AS(find_inputs(one.path()), FormatError);
  CHECK_THROWS_AS(find_inputs(one.path() + "/missing"), IoError);
}

}  // namespace msprobe::merge_result_merge_test
