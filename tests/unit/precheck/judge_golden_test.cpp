// SPDX-License-Identifier: Apache-2.0
// Single outputs, judged by the Python tool of both releases (tests/data/golden/prechecks/standards).
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "precheck/result_files/spelling.hpp"
#include "precheck/standards/standards.hpp"
#include "support/text.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::precheck::judge_golden_test {
namespace {

using nlohmann::json;
using tensor::DType;

json read(const std::string& name) {
  std::ifstream file(test::in_source("tests/data/golden/prechecks/standards/" + name));
  REQUIRE(file.good());
  return json::parse(file);
}

/// The inputs' values; `bytes` has the tensors.
class Inputs {
 public:
  CallOutput decode(const json& value) {
    if (value.contains("tensor")) return {tensor_of(value)};
    // A runner gives the values of a dictionary as a list.
    for (const char* kind : {"list", "tuple", "dict"}) {
      if (!value.contains(kind)) continue;
      CallOutput::List list;
      list.tuple = std::string(kind) == "tuple";
      for (const json& element : value[kind]) list.elements.push_back(decode(element));
      return {list};
    }
    const std::string text = value["python"];
    if (text == "None") return {};
    if (text.front() == '\'') return {ScalarOutput{ScalarOutput::ScalarKind::text, text}};
    if (text.front() == '{') return {OtherOutput{"<class 'set'>"}};
    const bool is_real = text.find('.') != std::string::npos;
    return {ScalarOutput{is_real ? ScalarOutput::ScalarKind::real : ScalarOutput::ScalarKind::integer, text,
                         parse_number(text).value()}};
  }

 private:
  TensorOutput tensor_of(const json& value) {
    TensorOutput tensor;
    tensor.dtype = tensor::dtype_from_torch(value["tensor"].get<std::string>()).value();
    tensor.shape = value["shape"].get<std::vector<std::uint64_t>>();
    std::vector<std::byte>& bytes = bytes_.emplace_back();
    if (value.contains("runs")) {
      for (const json& run : value["runs"]) {
        for (int i = 0; i < run[0].get<int>(); ++i) append(bytes, tensor.dtype, run[1]);
      }
    } else if (value["bytes_le"].is_array()) {
      for (const json& each : value["bytes_le"]) bytes.push_back(static_cast<std::byte>(each.get<int>()));
    } else {
      const std::string hex = value["bytes_le"];
      for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    tensor.bytes = bytes;
    return tensor;
  }

  /// The runs hold few values, all of them numbers of the type.
  static void append(std::vector<std::byte>& bytes, DType dtype, double value) {
    const auto put = [&](auto element) {
      const auto* from = reinterpret_cast<const std::byte*>(&element);
      bytes.insert(bytes.end(), from, from + sizeof element);
    };
    if (dtype == DType::float64) {
      put(value);
    } else if (dtype == DType::float32) {
      put(static_cast<float>(value));
    } else if (dtype == DType::bfloat16) {
      std::uint32_t bits = 0;
      const auto single = static_cast<float>(value);
      std::memcpy(&bits, &single, sizeof bits);
      put(static_cast<std::uint16_t>(bits >> 16));
    } else {
      REQUIRE(dtype == DType::float16);
      int exponent = 0;
      const double fraction = std::frexp(value, &exponent);  // 4 is 0.5 * 2^3
      put(static_cast<std::uint16_t>(((exponent + 14) << 10) | (static_cast<int>(fraction * 2048) & 0x3ff)));
    }
  }

  std::deque<std::vector<std::byte>> bytes_;
};

std::vector<std::string> cells(const OutputRow& row, Selection selection) {
  const auto text = [](const std::string& value) { return value.empty() ? " " : value; };
  std::vector<std::string> cells = {text(row.reference_dtype), text(row.device_dtype), text(row.shape)};
  for (const FigureValue& figure : row.figures) cells.push_back(spelled_figure(figure));
  cells.emplace_back(status_word(row.status, selection));
  cells.push_back(row.message);
  return cells;
}

ApiName api_of(const json& input) {
  return {"Torch", input["api"], "0"};
}

/// Our verdict where both releases end otherwise, by the items of docs/differences/prechecks.md.
const std::map<std::string, PrecheckVerdict> kDifferences = {
    {"list_device_shorter", PrecheckVerdict::error},  // P14
    {"f8_output", PrecheckVerdict::pass},             // P15
    {"dict", PrecheckVerdict::pass},                  // P15
    {"dict_keys", PrecheckVerdict::pass},             // P15
};

/// Judges one case of inputs.json.
CallJudgement judge_case(const json& input, Inputs& inputs, const Standards& standards, Selection selection) {
  const CallOutput reference = inputs.decode(input["bench"]);
  const CallOutput device = inputs.decode(input["device"]);
  return judge(api_of(input), CallDirection::forward, reference, device, standards, selection);
}

void check_release(const char* inputs_name, const char* expected_name, Selection selection,
                   std::size_t least) {
  const json inputs = read(inputs_name);
  const json expected = read(expected_name);
  const Standards standards = Standards::built_in();
  std::map<std::string, json> by_name;
  for (const json& input : inputs) by_name[input["name"]] = input;
  REQUIRE(expected.size() >= least);
  for (const json& one : expected) {
    const std::string case_name = one["name"];
    CAPTURE(case_name);
    Inputs values;
    const CallJudgement judgement = judge_case(by_name.at(case_name), values, standards, selection);
    if (const auto ours = kDifferences.find(case_name); ours != kDifferences.end()) {
      CHECK(judgement.verdict == ours->second);
      continue;
    }
    CHECK(status_word(judgement.status, selection) == one["status"].get<std::string>());
    std::vector<std::vector<std::string>> rows;
    for (const OutputRow& row : judgement.rows) {
      if (!row.only_ours) rows.push_back(cells(row, selection));
    }
    REQUIRE(rows.size() == one["rows"].size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t c = 0; c < rows[r].size(); ++c) {
        CAPTURE(c);
        const std::string theirs = one["rows"][r][c];
        // The cosine is divided by other numbers on the way: its last digit may be another.
        constexpr std::size_t kCosine = 3;
        if (c == kCosine && rows[r][c] != theirs && theirs != " ") {
          CHECK(std::fabs(parse_number(rows[r][c]).value() - parse_number(theirs).value()) < 1.5e-14);
        } else {
          CHECK(rows[r][c] == theirs);
        }
      }
    }
  }
}

TEST_CASE("Outputs are judged as release 26.2.0 does, cell by cell") {
  check_release("inputs.json", "26.2.0.json", Selection::release_26, 103);
}

TEST_CASE("Tensors of chance are judged as release 26.2.0 does, cell by cell") {
  check_release("random_inputs.json", "random_26.2.0.json", Selection::release_26, 80);
}

TEST_CASE("Outputs are judged as release 8.1.1 does, cell by cell") {
  check_release("inputs.json", "8.1.1.json", Selection::release_8, 102);
}

struct GoldenFigure {
  const char* name;
  Figure figure;
};
struct GoldenCriterion {
  const char* name;
  const char* list;  // of the standards; null: no list
  std::vector<GoldenFigure> figures;
};

TEST_CASE("Lists of a file take the place of the table's") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch.path() + "/standards.yaml";
  std::ofstream(path) << "ulp: [mine]\nlevel_1: [mine]\nlevel_2: []\nquantized: [mine]\n";
  const Standards own = Standards::load(path);
  const Standards built_in = Standards::built_in();
  CHECK(built_in.listed("addmm_") == Criterion::ulp);
  CHECK(built_in.listed("__rsub__") == Criterion::benchmark);
  CHECK(built_in.listed("test_api") == Criterion::accumulative_error);
  CHECK(own.listed("addmm_") == Criterion::benchmark);
  CHECK(own.listed("mine") == Criterion::ulp);
  CHECK(own.listed("abs_") == Criterion::binary_consistency);
  CHECK(built_in.ratios("embedding").rmse == 1.5);
  CHECK(built_in.ratios("npu_rms_norm_backward").rmse == 1.2);
  CHECK(own.ratios("embedding").rmse == 2);
  CHECK(own.ratios("mine").rmse == 1.5);
  CHECK(own.ratios("npu_rms_norm_backward").rmse == 2);
  CHECK(built_in.may_differ_by_one("npu_dynamic_quant"));
  CHECK_FALSE(own.may_differ_by_one("npu_dynamic_quant"));
}

TEST_CASE("Each criterion has the Python tool's figures, whichever an operation gets") {
  const std::vector<GoldenCriterion> criteria = {
      {"AbsolutethdCompare",
       "absolute_threshold",
       {{"inf_nan_error_ratio", Figure::inf_nan_rate},
        {"rel_err_ratio", Figure::relative_rate},
        {"abs_err_ratio", Figure::absolute_rate}}},
      {"BenchmarkCompare",
       nullptr,
       {{"small_value_err_ratio", Figure::small_share},
        {"max_rel_error", Figure::max_relative},
        {"mean_rel_error", Figure::mean_relative},
        {"rmse", Figure::rmse},
        {"eb", Figure::balance}}},
      {"UlpCompare",
       "ulp",
       {{"max_ulp_error", Figure::max_ulp},
        {"mean_ulp_error", Figure::mean_ulp},
        {"ulp_error_proportion", Figure::ulp_share}}},
      {"BinaryCompare", "binary_consistency", {{"error_rate", Figure::binary}}},
      {"ThousandthStdCompare", "thousandth", {{"rel_err_thousandth", Figure::thousandth}}},
      {"AccumulativeErrorCompare",
       "accumulative_error",
       {{"inf_nan_error_ratio", Figure::inf_nan_rate},
        {"rel_err_ratio", Figure::relative_rate},
        {"abs_err_ratio", Figure::absolute_rate},
        {"eb", Figure::balance}}},
  };
  const json inputs = read("inputs.json");
  std::map<std::string, json> by_name;
  for (const json& input : inputs) by_name[input["name"]] = input;
  const test::ScratchDirectory scratch;
  int compared = 0;
  for (const GoldenCriterion& criterion : criteria) {
    const std::string path = scratch.path() + "/standards.yaml";
    for (const json& one : read("26.2.0.json")) {
      if (!one.contains("standards") || !one["standards"][criterion.name].is_object()) continue;
      const std::string case_name = one["name"];
      const json& input = by_name.at(case_name);
      const std::string reference_type = input["bench"]["tensor"];
      if (!reference_type.starts_with("float") || case_name == "empty") continue;
      CAPTURE(case_name);
      CAPTURE(std::string(criterion.name));
      {
        std::ofstream file(path);
        for (const char* list :
             {"absolute_threshold", "binary_consistency", "ulp", "thousandth", "accumulative_error"}) {
          const bool is_ours = criterion.list != nullptr && std::string(list) == criterion.list;
          file << list << ": [" << (is_ours ? input["api"].get<std::string>() : "") << "]\n";
        }
      }
      Inputs values;
      const CallJudgement judgement = judge_case(input, values, Standards::load(path), Selection::release_8);
      REQUIRE(judgement.rows.size() == 1);
      for (const auto& [name, figure] : criterion.figures) {
        CAPTURE(std::string(name));
        const json& figures = one["standards"][criterion.name];
        const FigureValue& mine = judgement.rows[0][figure];
        REQUIRE(figures.contains(name));
        const std::string theirs = figures[name];
        const std::size_t colon = theirs.find(':');
        const double value = parse_number(theirs.substr(colon + 1)).value();
        const std::string type = theirs.substr(0, colon);
        CHECK(mine.form == (type == "int"       ? FigureValue::Form::integer
                            : type == "float32" ? FigureValue::Form::single
                                                : FigureValue::Form::real));
        if (std::isnan(value)) {
          CHECK(std::isnan(mine.value));
        } else if (type == "float32" || std::isinf(value)) {
          CHECK(mine.value == value);
        } else {
          CHECK(std::fabs(mine.value - value) <= 1e-13 * std::fabs(value));
        }
        ++compared;
      }
    }
  }
  CHECK(compared > 1000);
}

}  // namespace
}  // namespace msprobe::precheck::judge_golden_test
