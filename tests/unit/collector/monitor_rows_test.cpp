// SPDX-License-Identifier: Apache-2.0
// The csv files of the training monitor, beside those of the Python tool.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "collector/monitor/anomaly_file.hpp"
#include "collector/monitor/output.hpp"
#include "collector/monitor/row_text.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "unit/collector/golden_file.hpp"
#include "unit/support/scratch_directory.hpp"

namespace msprobe::monitor_rows_test {

using namespace msprobe;
using namespace msprobe::collector::monitor;  // NOLINT

namespace {

/// Rows whose cells are given, as the writer of the Python tool gets them.
class WriterCall {
 public:
  WriterCall(const Json& call, const Json& one, std::vector<SeriesInfo>& infos) {
    auto settings = std::make_shared<Settings>();
    settings->digits = one["ndigits"];
    settings->steps_per_file = one["step_count_per_record"];
    settings->each_micro_batch = call["use_micro_step"];
    for (const Json& op : call["ops"]) settings->statistics.push_back(statistic_of(op));
    batch.settings = settings;
    batch.step = call["step"];
    infos.reserve(infos.size() + 100);
    for (const auto& [tag, values] : call["metrics"].items()) {
      infos.push_back(info_of(tag, call["prefix"]));
      SeriesRow row;
      row.series = &infos.back();
      row.held.held = Observation::HeldValue::tensor;
      row.held.measured.count = 1;
      for (std::size_t i = 0; i < values.size(); ++i) put(row.held, call["ops"][i], values[i]);
      batch.rows.push_back(std::move(row));
    }
  }

  Batch batch;

 private:
  static MonitorStatistic statistic_of(const std::string& name) {
    const auto* const found = std::find(series::kStatisticNames.begin(), series::kStatisticNames.end(), name);
    return static_cast<MonitorStatistic>(found - series::kStatisticNames.begin());
  }

  static SeriesInfo info_of(const std::string& tag, const std::string& prefix) {
    SeriesInfo info;
    info.quantity = series::find_quantity(prefix);
    const std::string head = tag.substr(0, tag.find('/'));
    const std::size_t first = head.find(':');
    const std::size_t second = head.find(':', first + 1);
    info.stage = std::stoi(head.substr(0, first));
    info.name = head.substr(first + 1, second == std::string::npos ? second : second - first - 1);
    if (second != std::string::npos) info.micro_step = std::stoi(head.substr(second + 1));
    return info;
  }

  static double real_of(const Json& value) {
    return value.is_string() ? *parse_number(value.get<std::string>()) : value.get<double>();
  }

  static void put(Observation& held, const std::string& op, const Json& value) {
    const std::string type = value["t"];
    if (op == "shape") {
      held.shape = value["v"].get<std::vector<std::int64_t>>();
    } else if (op == "dtype") {
      held.dtype = "torch." + value["v"].get<std::string>();
    } else if (op == "nans" && type == "i64") {
      held.measured.nan = value["v"];
    } else if (op == "nans") {
      held.held = Observation::HeldValue::absent;  // the one row of the cases without a tensor
    } else if (op == "norm") {
      held.measured.norm = real_of(value["v"]);
    } else if (type == "none") {
      held.shape = {1};
    } else {
      held.extrema = type == "bool" ? Extrema::boolean : (type == "i64" ? Extrema::integer : Extrema::real);
      const double real =
          type == "f32" ? static_cast<double>(static_cast<float>(real_of(value["v"]))) : real_of(value["v"]);
      (op == "min" ? held.measured.min : held.measured.max) = real;
      if (type == "f32" || type == "f64") return;
      (op == "min" ? held.measured.integer_min : held.measured.integer_max) = value["v"].get<std::int64_t>();
    }
  }
};

std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

std::map<std::string, std::string> write_all_calls(const Json& one) {
  const test::ScratchDirectory folder;
  std::vector<std::vector<SeriesInfo>> infos(one["calls"].size());
  MonitorOutput output(folder.path() + "/out", folder.path() + "/alerts");
  for (std::size_t i = 0; i < infos.size(); ++i)
    CHECK_FALSE(output.write(WriterCall(one["calls"][i], one, infos[i]).batch));
  return files_of(folder.path() + "/out");
}

}  // namespace

TEST_CASE("Rows are spelt as the Python tool spells them") {
  // Rows of communication and of two tags under one name run into each other there; changed columns stand
  // under the old header; see below.
  const std::set<std::string> mended = {"comm_no_stage", "same_name_two_tags", "ops_change"};
  std::size_t seen = 0;
  for (Json one : test::monitor_golden("writer.json")) {
    const std::string name = one["name"];
    if (mended.count(name) != 0) continue;
    CAPTURE(name);
    ++seen;
    const auto files = write_all_calls(one);
    REQUIRE(files.size() == one["files"].size());
    for (const auto& [file, text] : one["files"].items()) {
      REQUIRE(files.count(file) == 1);
      std::string theirs = text;
      // The largest double is finite.
      if (name == "rounding") theirs.replace(theirs.rfind("inf"), 3, "1.7976931348623157e+308");
      // A row without a number of nans is one of something that is no tensor here.
      if (name == "int_column_with_nan") theirs.replace(theirs.rfind("2.0"), 3, "nan");
      // The call gives no micro step: a field is missing there.
      if (name == "int_and_float") {
        for (const char* row : {"0,a,", "0,b,"}) theirs.insert(theirs.find(row) + 4, "0,");
      }
      CHECK(files.at(file) == theirs);
    }
  }
  CHECK(seen == 16);
}

TEST_CASE("Columns that change begin a new file") {
  for (Json one : test::monitor_golden("writer.json")) {
    if (one["name"] != "ops_change") continue;
    const auto files = write_all_calls(one);
    REQUIRE(files.size() == 2);
    CHECK(files.at("grad_reduced_0-3.csv") == "vpp_stage,name,step,norm,min\n0,a,0,1.0,2.0\n");
    CHECK(files.at("grad_reduced_1-3.csv") == "vpp_stage,name,step,max\n0,a,1,9.0\n");
  }
}

TEST_CASE("A half row that a killed process has left is cut off, and the file goes on") {
  const test::ScratchDirectory folder;
  const std::string path = folder.path() + "/x_0-9.csv";
  std::ofstream(path) << "h\n1,2\n3,";
  CsvSeries series(folder.path(), "x_", 0, 10);
  series.append(3, "h\n", "5,6\n");
  CHECK(files_of(folder.path()).at("x_0-9.csv") == "h\n1,2\n5,6\n");
  series.append(12, "h\n", "7,8\n");
  CHECK(files_of(folder.path()).at("x_10-19.csv") == "h\n7,8\n");
}

TEST_CASE("A file that is no file is refused in one line") {
  const test::ScratchDirectory folder;
  std::filesystem::create_directory(folder.path() + "/x_0-9.csv");
  CsvSeries series(folder.path(), "x_", 0, 10);
  CHECK_THROWS_WITH_AS(series.append(3, "h\n", "5,6\n"), doctest::Contains("x_0-9.csv"), IoError);
}

TEST_CASE("The file of alerts is there before the first one") {
  const test::ScratchDirectory folder;
  AnomalyFile file(folder.path() + "/rank0");
  file.append({});
  CHECK(files_of(folder.path() + "/rank0").at("anomaly.json") == "{}");
  Hit hit;
  hit.tag = "0:a/rank0/actv";
  file.append({anomaly_member(hit, {0})});
  CHECK(nlohmann::json::parse(files_of(folder.path() + "/rank0").at("anomaly.json")).size() == 1);
}

TEST_CASE("The file of alerts takes only so many, says so once, and stays whole") {
  const test::ScratchDirectory folder;
  AnomalyFile file(folder.path() + "/rank0");
  Hit hit;
  hit.tag = "0:a/rank0/actv";
  std::vector<std::string> members;
  for (hit.step = 0; hit.step < 20'500; ++hit.step) members.push_back(anomaly_member(hit, {0, 1}));
  CHECK_THROWS_WITH_AS(file.append(members), doctest::Contains("anomaly.json"), Error);
  file.append({anomaly_member(hit, {0})});
  const auto all = nlohmann::json::parse(files_of(folder.path() + "/rank0").at("anomaly.json"));
  CHECK(all.size() == 20'000);
  CHECK(all.contains("0:a/rank0/actv_step_19999_call_-1"));
  file.remove_old();
  CHECK(files_of(folder.path() + "/rank0").empty());
}

}  // namespace msprobe::monitor_rows_test
