// SPDX-License-Identifier: Apache-2.0
#include "precheck/result_files/result_files.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "precheck/result_files/row_ends.hpp"
#include "sheets/csv_rows.hpp"
#include "support/error.hpp"
#include "unit/support/complaint.hpp"
#include "unit/support/scratch_directory.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::precheck::result_files_test {
namespace {

const std::string kTime = "20260101000000";
const std::string kResult = "accuracy_checking_result_20260101000000.csv";
const std::string kDetails = "accuracy_checking_details_20260101000000.csv";

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string golden(const std::string& name) {
  return test::in_source("tests/data/golden/prechecks/acc_check/" + name);
}

std::vector<std::vector<std::string>> rows_of(const std::string& path) {
  const auto file = open_file(path);
  sheets::CsvRows csv(*file);
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> fields;
  while (csv.next(fields)) rows.push_back(fields);
  rows.erase(rows.begin());
  return rows;
}

PythonStatus status_of(const std::string& word) {
  if (word == "pass") return PythonStatus::pass;
  if (word == "warning") return PythonStatus::warning;
  if (word == "error") return PythonStatus::error;
  REQUIRE((word == "SKIP" || word == " "));
  return word == "SKIP" ? PythonStatus::skip : PythonStatus::none;
}

/// The results of the Python tool, as reports.
std::vector<OperationReport> golden_reports(const std::string& folder) {
  std::vector<OperationReport> reports;
  for (const auto& row : rows_of(golden(folder) + "/" + kResult)) {
    OperationReport& report = reports.emplace_back();
    report.name = row[0];
    report.forward = status_of(row[1]);
    report.backward = status_of(row[2]);
    if (row.size() > 3) report.message = row[3];
  }
  for (const auto& row : rows_of(golden(folder) + "/" + kDetails)) {
    OutputRow output;
    output.name = row[0];
    const auto blank = [](const std::string& text) { return text == " " ? "" : text; };
    output.reference_dtype = blank(row[1]);
    output.device_dtype = blank(row[2]);
    output.shape = blank(row[3]);
    for (std::size_t i = 0; i < kFigureCount; ++i) {
      if (row[4 + i] != " ") output.figures[i] = {FigureValue::Form::text, 0, row[4 + i]};
    }
    output.status = status_of(row[4 + kFigureCount]);
    output.message = row[5 + kFigureCount];
    for (OperationReport& report : reports) {
      if (output.name.starts_with(report.name + ".")) report.rows.push_back(output);
    }
  }
  return reports;
}

template <typename Act>
std::string io_complaint(const Act& act) {
  return test::message_of<IoError>([&] { act(); }, "");
}

const ResultStyle kPython = {.selection = Selection::release_26, .ours = false};

TEST_CASE("Both files of the Python tool come out as it wrote them") {
  for (const char* folder : {"out_small", "out_tensor"}) {
    const test::ScratchDirectory scratch;
    ResultFiles files = ResultFiles::create(scratch.path(), kTime, kPython);
    for (const OperationReport& report : golden_reports(folder)) files.add(report);
    CHECK(files.result_path() == scratch / kResult);
    CHECK(content(scratch / kResult) == content(golden(folder) + "/" + kResult));
    CHECK(content(scratch / kDetails) == content(golden(folder) + "/" + kDetails));
  }
}

TEST_CASE("A run that was stopped anywhere goes on to the same files") {
  const std::vector<OperationReport> reports = golden_reports("out_small");
  const std::string result = content(golden("out_small/") + kResult);
  const std::string details = content(golden("out_small/") + kDetails);
  // Details come first, then the result: any state is a beginning of both, one of them whole up to an
  // operation.
  const auto check = [&](std::size_t details_size, std::size_t result_size, std::size_t finished) {
    CAPTURE(details_size);
    CAPTURE(result_size);
    const test::ScratchDirectory scratch;
    put(scratch / kResult, result.substr(0, result_size));
    put(scratch / kDetails, details.substr(0, details_size));
    ResultFiles files = ResultFiles::resume(scratch / kResult, {});
    CHECK_FALSE(files.style().ours);  // as the header says
    CHECK(files.finished().size() == finished);
    for (const OperationReport& report : reports) {
      if (!files.finished().contains(report.name)) files.add(report);
    }
    CHECK(content(scratch / kResult) == result);
    CHECK(content(scratch / kDetails) == details);
  };
  const std::size_t last_result = result.find("Torch.masked_select.0");
  const std::size_t last_details = details.find("Torch.masked_select.0");
  for (std::size_t size = last_details; size <= details.size(); size += 7)
    check(size, last_result, reports.size() - 1);
  for (std::size_t size = last_result; size < result.size(); ++size)
    check(details.size(), size, reports.size() - 1);
  check(details.size(), result.size(), reports.size());
}

OperationReport small_report(const std::string& name) {
  OperationReport report;
  report.name = name;
  report.forward = PythonStatus::warning;
  report.forward_verdict = PrecheckVerdict::pass;
  report.rows.push_back(
      skipped_row(name, CallDirection::forward, "a \"message\",\nof two lines", "a reason"));
  report.rows[0][Figure::cosine] = {FigureValue::Form::real, 0.5, {}};
  report.rows[0][Figure::max_absolute] = {FigureValue::Form::single, 9.75579e-05, {}};
  report.rows[0][Figure::small_share] = {FigureValue::Form::integer, 0, {}};
  OutputRow ours = skipped_row(name, CallDirection::forward, "", "ours alone");
  ours.only_ours = true;
  report.rows.push_back(ours);
  return report;
}

TEST_CASE("Our columns come after the Python tool's") {
  const test::ScratchDirectory scratch;
  ResultFiles::create(scratch.path(), kTime, {Selection::release_8}).add(small_report("Torch.add.0"));
  CHECK(content(scratch / kResult) ==
        "\xEF\xBB\xBF"
        "API name,Forward Test Success,Backward Test Success,Message,Forward Verdict,Backward "
        "Verdict,Reason\r\n"
        "Torch.add.0,Warning, ,,pass,,\r\n");
  const auto rows = rows_of(scratch / kDetails);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == std::vector<std::string>{"Torch.add.0.forward.output.0",
                                            " ",
                                            " ",
                                            " ",
                                            "0.50000000000000",
                                            "9.75579e-05",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            "0",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            " ",
                                            "SKIP",
                                            "a \"message\",\nof two lines",
                                            "skip",
                                            "a reason"});
  CHECK(rows[1].back() == "ours alone");
  const test::ScratchDirectory python;
  ResultFiles::create(python.path(), kTime, kPython).add(small_report("Torch.add.0"));
  CHECK(rows_of(python / kDetails).size() == 1);
  CHECK(rows_of(python / kResult)[0] == std::vector<std::string>{"Torch.add.0", "warning", " "});
}

TEST_CASE("An operation that does not fit on the disk leaves the files as they were") {
  const test::ScratchDirectory scratch;
  ResultFiles files = ResultFiles::create(scratch.path(), kTime, {});
  files.add(small_report("Torch.add.0"));
  const std::string result = content(scratch / kResult);
  const std::string details = content(scratch / kDetails);
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = details.size() + 50;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string complaint = io_complaint([&] { files.add(small_report("Torch.add.1")); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, handler);
  CHECK(complaint.find(kDetails) != std::string::npos);
  CHECK(content(scratch / kResult) == result);
  CHECK(content(scratch / kDetails) == details);
  CHECK_FALSE(files.finished().contains("Torch.add.1"));
  files.add(small_report("Torch.add.1"));
  CHECK(content(scratch / kDetails).size() > details.size());
}

TEST_CASE("Files that cannot be continued are refused") {
  const test::ScratchDirectory scratch;
  CHECK_THROWS_AS(ResultFiles::resume(scratch / "result.csv", {}), UsageError);
  CHECK_THROWS_AS(ResultFiles::resume(scratch / "accuracy_checking_result_2026010100000x.csv", {}),
                  UsageError);
  CHECK_THROWS_AS(ResultFiles::resume(scratch / kResult, {}), IoError);
  put(scratch / kResult, content(golden("out_small/") + kResult));
  CHECK_THROWS_AS(ResultFiles::resume(scratch / kResult, {}), IoError);
  put(scratch / kDetails, "API Name,Shape\r\n");
  CHECK_THROWS_AS(ResultFiles::resume(scratch / kResult, {}), FormatError);
  CHECK(content(scratch / kDetails) == "API Name,Shape\r\n");
  put(scratch / kDetails, content(golden("out_small/") + kDetails));
  const ResultFiles first = ResultFiles::resume(scratch / kResult, {});
  CHECK(io_complaint([&] { ResultFiles::resume(scratch / kResult, {}); }).find("another process") !=
        std::string::npos);
  CHECK_THROWS_AS(ResultFiles::create(scratch.path(), kTime, {}), IoError);
}

TEST_CASE("Rows end at line breaks outside of quotes") {
  std::vector<std::string> firsts;
  const auto end = each_row_end(*memory_source("\xEF\xBB\xBF"
                                               "a,b\r\n\"c\nd\",\"x,\"\"\n\"\r\n\re,f\nrest"),
                                [&](const RowEnd& row) { firsts.emplace_back(row.first); });
  CHECK(firsts == std::vector<std::string>{"a", "c\nd", "e"});
  CHECK(end == 28);
}

TEST_CASE("Numbers of single precision print as NumPy prints them") {
  const auto single = [](float value) { return spelled_figure({FigureValue::Form::single, value, {}}); };
  CHECK(single(0) == "0.0");
  CHECK(single(0.00096201897F) == "0.00096201897");
  CHECK(single(9.75579e-05F) == "9.75579e-05");
  CHECK(single(1e-4F) == "1e-04");
  CHECK(single(0.00010001F) == "0.00010001");
  CHECK(single(65504) == "65504.0");
  CHECK(single(999999) == "999999.0");
  CHECK(single(1234567) == "1.234567e+06");
  CHECK(single(1e16F) == "1e+16");
  CHECK(single(-2.5F) == "-2.5");
  CHECK(single(std::numeric_limits<float>::infinity()) == "inf");
  CHECK(single(std::numeric_limits<float>::quiet_NaN()) == "nan");
  CHECK(spelled_figure({FigureValue::Form::real, -1.0 / 3, {}}) == "-0.33333333333333");
}

}  // namespace
}  // namespace msprobe::precheck::result_files_test
