// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank_rows.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "compare/sinks/tables.hpp"
#include "support/error.hpp"
#include "unit/compare/dumps.hpp"

namespace msprobe::compare_result_table_test {

using namespace msprobe;
using namespace msprobe::compare;
using measuring::MetricStatus;
using measuring::Mode;
using verdict::RankResult;
using Names = std::vector<std::string>;

namespace {

const Names kCommon = {"NPU Name",         "Bench Name",         "NPU Dtype",         "Bench Dtype",
                       "NPU Tensor Shape", "Bench Tensor Shape", "NPU Requires_grad", "Bench Requires_grad"};
const Names kStatisticColumns = {"NPU max",   "NPU min",   "NPU mean",   "NPU l2norm",
                                 "Bench max", "Bench min", "Bench mean", "Bench l2norm"};
const Names kEnd = {"Requires_grad Consistent", "Result", "Err_message"};

Names joined(std::initializer_list<Names> parts) {
  Names out;
  for (const Names& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::string one(const RankResult& result, std::string_view column, std::size_t row = 0) {
  return cell(RankRows::of(result), row, column);
}

dump::StackTable stacks() {
  return dump::read_stack_json(
      *memory_source(R"({"Torch.a.0.forward": ["File a.py, line 1, in f, \n x = 'y'", "b"]})"));
}

const std::string kInput = tensor_json("1.5", "torch.float32", "[2, 3]", R"(, "requires_grad": true)");
const std::string kEntry = forward_json("Torch.a.0.forward", kInput + "," + kInput, tensor_json("2"));

}  // namespace

TEST_CASE("the columns of each mode") {
  RankResult result = judged(kEntry, kEntry, Mode::statistics, false);
  CHECK(RankRows::of(result).columns() ==
        joined({kCommon,
                {"Max diff", "Min diff", "Mean diff", "L2norm diff", "MaxRelativeErr", "MinRelativeErr",
                 "MeanRelativeErr", "NormRelativeErr"},
                kStatisticColumns,
                kEnd}));
  result.mode = Mode::md5;
  CHECK(RankRows::of(result).columns() == joined({kCommon, {"NPU MD5", "BENCH MD5"}, kEnd}));
  result.target.stacks = stacks();
  CHECK(RankRows::of(result).columns() ==
        joined({kCommon, {"NPU MD5", "BENCH MD5"}, kEnd, {"NPU_Stack_Info"}}));
  result.mode = Mode::tensor;
  CHECK(RankRows::of(result).columns() == joined({kCommon,
                                                  {"Cosine", "EucDist", "MaxAbsErr", "MaxRelativeErr",
                                                   "One Thousandth Err Ratio", "Five Thousandths Err Ratio"},
                                                  kStatisticColumns,
                                                  kEnd,
                                                  {"NPU_Stack_Info", "Data_name"}}));
}

TEST_CASE("every row has a cell for every column") {
  for (const Mode mode : {Mode::statistics, Mode::md5, Mode::tensor}) {
    for (const bool with_stacks : {false, true}) {
      RankResult result = matched(kEntry, "", mode, false);
      if (with_stacks) result.target.stacks = stacks();
      const RankRows table = RankRows::of(result);
      REQUIRE(table.rows() == 3);
      std::vector<report::Cell> cells;
      report::Scratch scratch;
      for (std::size_t i = 0; i < table.rows(); ++i) {
        table.row(i, cells, scratch);
        CHECK(cells.size() == table.columns().size());
      }
    }
  }
}

TEST_CASE("cells of a matched row") {
  const RankResult result =
      judged(forward_json("Torch.a.0.forward", tensor_json("3", "torch.float16"), ""),
             forward_json("Torch.a.0.forward",
                          tensor_json("2.5", "torch.float32", "[3, 2]", R"(, "requires_grad": false)"), ""),
             Mode::statistics, false);
  CHECK(one(result, "NPU Name") == "Torch.a.0.forward.input.0");
  CHECK(one(result, "Bench Name") == "Torch.a.0.forward.input.0");
  CHECK(one(result, "NPU Dtype") == "torch.float16");
  CHECK(one(result, "Bench Dtype") == "torch.float32");
  CHECK(one(result, "NPU Tensor Shape") == "[2, 3]");
  CHECK(one(result, "Bench Tensor Shape") == "[3, 2]");
  CHECK(one(result, "NPU Requires_grad") == "N/A");
  CHECK(one(result, "Bench Requires_grad") == "False");
  CHECK(one(result, "Requires_grad Consistent") == "false");
  CHECK(one(result, "NPU max") == "integer 3");
  CHECK(one(result, "Bench l2norm") == "number 2.500000");
  CHECK(one(result, "Max diff") == "0.5");
  CHECK(one(result, "NormRelativeErr") == "20.0%");
  CHECK(one(result, "Result") == "error");
  CHECK(one(result, "Err_message") == R"(["error: The Required_Grad of NPU and Bench are inconsistent", )"
                                      R"("error: The dtype of NPU and Bench are inconsistent.", )"
                                      R"("error: The shape of NPU and Bench are inconsistent."])");
  CHECK(RankRows::of(result).severity(0) == report::Severity::error);
}

TEST_CASE("cells of a row without partner") {
  const RankResult result = judged(kEntry, "", Mode::statistics, false);
  for (const char* column : {"Bench Name", "Bench Dtype", "Bench Tensor Shape", "Bench Requires_grad",
                             "Max diff", "L2norm diff", "NormRelativeErr", "Bench max", "Bench l2norm"}) {
    CAPTURE(column);
    CHECK(one(result, column) == "N/A");
  }
  CHECK(one(result, "Requires_grad Consistent") == "false");
  CHECK(one(result, "Requires_grad Consistent", 2) == "true");  // N/A on both sides
  CHECK(one(result, "Result") == "warning");
  CHECK(RankRows::of(result).severity(0) == report::Severity::warning);
  const RankResult python = judged(kEntry, "", Mode::statistics, true);
  CHECK(one(python, "Result") == "pass");
  CHECK(one(python, "Err_message") == "[]");
  CHECK(RankRows::of(python).severity(0) == report::Severity::none);
}

TEST_CASE("texts and special values in statistics") {
  const auto cells_of = [](const std::string& npu, const std::string& bench) {
    const RankResult result = judged(forward_json("Torch.a.0.forward", npu, ""),
                                     forward_json("Torch.a.0.forward", bench, ""), Mode::statistics, false);
    return one(result, "NPU max") + " | " + one(result, "Bench max") + " | " + one(result, "Max diff") +
           " | " + one(result, "MaxRelativeErr");
  };
  CHECK(cells_of(scalar_json("bool", "true"), scalar_json("bool", "false")) == "True | False | Diff | Diff");
  CHECK(cells_of("null", "null") == "None | None | 0 | 0");
  CHECK(cells_of(tensor_json("Infinity"), tensor_json("1")) == "number inf | integer 1 | inf | inf");
  CHECK(cells_of(tensor_json("1"), tensor_json("0")) == "integer 1 | integer 0 | 1 | inf");
}

TEST_CASE("numbers among the differences are numbers to JSON, texts are texts") {
  const RankResult result =
      judged(forward_json("Torch.a.0.forward", tensor_json("3") + "," + tensor_json("Infinity"), ""),
             forward_json("Torch.a.0.forward", tensor_json("2.5") + "," + tensor_json("1"), ""),
             Mode::statistics, false);
  const RankRows table = RankRows::of(result);
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  table.row(0, cells, scratch);
  REQUIRE(std::holds_alternative<report::Spelled>(cells[8]));
  CHECK(std::get<report::Spelled>(cells[8]).kind == report::Spelled::NumberForm::real);
  CHECK(std::get<report::Spelled>(cells[8]).value == 0.5);
  REQUIRE(std::holds_alternative<report::Text>(cells[4]));
  CHECK(std::get<report::Text>(cells[4]).json == "[2, 3]");
  REQUIRE(std::holds_alternative<report::Spelled>(cells[12]));
  CHECK(report::plain_text(cells[12]) == "20.0%");
  table.row(1, cells, scratch);
  CHECK(std::get<report::Text>(cells[8]).json.empty());  // inf is no JSON number
}

TEST_CASE("a shape that is no list of numbers is no JSON") {
  const RankResult result =
      judged(R"("Torch.a.0.forward": {"input_args": [{"type": "t", "dtype": "d", "shape": ["x"]},)" +
                 scalar_json("slice", "[1, 2, 3]") + "]}",
             "", Mode::statistics, false);
  const RankRows table = RankRows::of(result);
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  for (const std::size_t row : {0, 1}) {
    table.row(row, cells, scratch);
    CHECK(std::get<report::Text>(cells[4]).json.empty());
  }
}

TEST_CASE("checksums") {
  const std::string hashed = tensor_json("1", "torch.float32", "[2]", R"(, "md5": "0a0b0c0d")");
  const std::string members = forward_json(
      "Torch.a.0.forward", hashed + "," + tensor_json("1") + ",null," + scalar_json("int", "1"), "");
  const RankResult ours = judged(members, members, Mode::md5, false);
  CHECK(one(ours, "NPU MD5", 0) == "0a0b0c0d");
  CHECK(one(ours, "NPU MD5", 1) == "N/A");
  CHECK(one(ours, "BENCH MD5", 2) == "N/A");
  CHECK(one(ours, "BENCH MD5", 3) == "83dcefb7");
  const RankResult python = judged(members, members, Mode::md5, true);
  CHECK(one(python, "NPU MD5", 1) == "00000000");
  CHECK(one(judged(members, "", Mode::md5, false), "BENCH MD5") == "N/A");
}

TEST_CASE("metrics say why they are no numbers") {
  RankResult result = matched(kEntry, kEntry, Mode::tensor, false);
  result.metrics[0].status = MetricStatus::computed;
  result.metrics[0].value = {0.5, 1.5, 2.5, 3.5, 0.25, 0.75};
  CHECK(one(result, "Cosine") == "number 0.500000");
  CHECK(one(result, "Five Thousandths Err Ratio") == "number 0.750000");
  result.metrics[0].is_scalar = true;
  CHECK(one(result, "Cosine") == "unsupported");
  CHECK(one(result, "EucDist") == "unsupported");
  CHECK(one(result, "MaxAbsErr") == "number 2.500000");
  CHECK(one(result, "MaxRelativeErr") == "number 3.500000");
  CHECK(one(result, "One Thousandth Err Ratio") == "unsupported");
  result.metrics[0].status = MetricStatus::not_applicable;
  CHECK(one(result, "MaxAbsErr") == "N/A");
  result.metrics[0].status = MetricStatus::shape_unmatched;
  CHECK(one(result, "MaxAbsErr") == "shape unmatched");
  result.metrics[0].status = MetricStatus::unsupported;
  CHECK(one(result, "MaxAbsErr") == "unsupported");
}

TEST_CASE("names of data files on both sides") {
  const auto named = [](const char* name) {
    return forward_json(
        "Torch.a.0.forward",
        tensor_json("1", "torch.float32", "[2]", std::string(R"(, "data_name": ")") + name + "\""), "");
  };
  const std::string file = "Torch.a.0.forward.input.0.pt";
  CHECK(one(matched(named(file.c_str()), named(file.c_str()), Mode::tensor, false), "Data_name") ==
        "['" + file + "', '" + file + "']");
  CHECK(one(matched(named(file.c_str()), "", Mode::tensor, false), "Data_name") == "['" + file + "', 'N/A']");
  CHECK(one(matched(kEntry, kEntry, Mode::tensor, false), "Data_name") == "['-1', '-1']");
}

TEST_CASE("the stack stands on the first row of its entry") {
  RankResult result = judged(kEntry + "," + forward_json("Torch.b.0.forward", tensor_json("1"), ""), "",
                             Mode::statistics, false);
  result.target.stacks = stacks();
  CHECK(one(result, "NPU_Stack_Info", 0) == R"(["File a.py, line 1, in f, \n x = 'y'", 'b'])");
  CHECK(one(result, "NPU_Stack_Info", 1) == "N/A");
  CHECK(one(result, "NPU_Stack_Info", 3) == "N/A");  // no stack is known
  std::vector<report::Cell> cells;
  report::Scratch scratch;
  RankRows::of(result).row(0, cells, scratch);
  const auto* texts = std::get<report::Text>(cells.back()).texts;
  REQUIRE(texts != nullptr);
  CHECK(*texts == std::vector<std::string>{"File a.py, line 1, in f, \n x = 'y'", "b"});
}

TEST_CASE("messages are JSON whatever is in them") {
  RankResult result = matched(kEntry, kEntry, Mode::tensor, false);
  result.metrics[0].messages = {"a \"quote\", a \\ and a \x01", "\xff"};
  result.judgement.findings[0].add(verdict::RowRule::remark);
  CHECK(one(result, "Err_message") == R"(["a \"quote\", a \\ and a \u0001", "\ufffd"])");
}

TEST_CASE("several ranks in one table") {
  const RankResult first = judged(kEntry, kEntry, Mode::statistics, false);
  const RankResult second = judged(kEntry, "", Mode::statistics, false);
  const auto part = [](const RankResult& result, const char* rank, const char* step = "") {
    return JoinedPart{step, rank, std::make_shared<RankRows>(RankRows::of(result))};
  };
  const RankResult empty = judged("", "", Mode::statistics, false);
  const auto table = joined_table({part(first, "rank0"), part(empty, "rank2"), part(second, "rank1")});
  CHECK(table->columns().front() == "Rank");
  CHECK(table->columns().size() == RankRows::of(first).columns().size() + 1);
  REQUIRE(table->rows() == 6);
  CHECK(cell(*table, 2, "Rank") == "rank0");
  CHECK(cell(*table, 3, "Rank") == "rank1");
  CHECK(cell(*table, 2, "Result") == "pass");
  CHECK(cell(*table, 3, "Result") == "warning");
  CHECK(table->severity(2) == report::Severity::none);
  CHECK(table->severity(3) == report::Severity::warning);
  const auto steps = joined_table({part(first, "rank0", "step0"), part(second, "rank1", "step1")});
  CHECK(steps->columns()[0] == "Step");
  CHECK(steps->columns()[1] == "Rank");
  CHECK(cell(*steps, 5, "Step") == "step1");
}

TEST_CASE("ranks with other columns do not fit into one table") {
  const RankResult first = judged(kEntry, kEntry, Mode::statistics, false);
  const RankResult second = judged(kEntry, kEntry, Mode::md5, false);
  const std::vector<JoinedPart> parts = {{"", "rank0", std::make_shared<RankRows>(RankRows::of(first))},
                                         {"", "rank1", std::make_shared<RankRows>(RankRows::of(second))}};
  CHECK_THROWS_AS(joined_table(parts), UsageError);
}

}  // namespace msprobe::compare_result_table_test
