// SPDX-License-Identifier: Apache-2.0
#include "precheck/result_files/result_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "precheck/result_files/row_ends.hpp"
#include "sheets/csv_rows.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kResultStem = "accuracy_checking_result_";
constexpr std::string_view kDetailsStem = "accuracy_checking_details_";
constexpr std::string_view kComparedStem = "compare_result_";  // as compare calls its own
constexpr std::string_view kEnding = ".csv";
constexpr std::size_t kTimeDigits = 14;

const std::vector<std::string> kResultColumns = {"API name", "Forward Test Success", "Backward Test Success",
                                                 "Message"};
const std::vector<std::string> kOurResultColumns = {"Forward Verdict", "Backward Verdict", "Reason"};
const std::vector<std::string> kDetailsColumns = [] {
  std::vector<std::string> columns = {"API Name", "Bench Dtype", "DEVICE Dtype", "Shape"};
  for (std::size_t i = 0; i < kFigureCount; ++i) columns.emplace_back(column_of(static_cast<Figure>(i)));
  columns.insert(columns.end(), {"Status", "Message"});
  return columns;
}();
const std::vector<std::string> kOurDetailsColumns = {"Verdict", "Reason"};

std::string path_of(const std::string& folder, std::string_view stem, const std::string& time) {
  return folder + std::string(stem) + time + std::string(kEnding);
}

std::vector<std::string> with(std::vector<std::string> columns, const std::vector<std::string>& more,
                              bool ours) {
  if (ours) columns.insert(columns.end(), more.begin(), more.end());
  return columns;
}

std::vector<std::string> columns_of(const std::vector<std::string>& columns,
                                    const std::vector<std::string>& ours, const ResultStyle& style) {
  std::vector<std::string> all = with(columns, ours, style.ours);
  if (style.steps) all.emplace_back("Step");
  return all;
}

void append_row(std::string& out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i != 0) out += ',';
    // A text that a spreadsheet would take for a formula gets a quote in front. Names begin with a type and
    // figures with a digit, so that only unexpected texts are affected.
    const bool formula = fields[i].find_first_of("=+@") == 0;
    append_csv_field(out, (formula ? "'" : "") + valid_utf8(fields[i]));
  }
  out += "\r\n";
}

std::string or_blank(const std::string& text) {
  return text.empty() ? " " : text;
}

std::string header(const std::vector<std::string>& columns) {
  std::string text(kByteOrderMark);
  append_row(text, columns);
  return text;
}

/// Whether the file has msprobe's columns; FormatError if its header is another one altogether.
bool has_our_columns(const std::string& path, const std::vector<std::string>& columns,
                     const std::vector<std::string>& ours) {
  const auto file = open_file(path);
  sheets::CsvRows rows(*file);
  std::vector<std::string> fields;
  rows.next(fields);
  if (fields == columns) return false;
  if (fields == with(columns, ours, true)) return true;
  throw FormatError(display(path), "it does not have the columns of a pre-check");
}

}  // namespace

OutputRow skipped_row(std::string_view operation, CallDirection direction, std::string message,
                      std::string reason) {
  OutputRow row;
  row.name = std::string(operation) +
             (direction == CallDirection::forward ? ".forward.output.0" : ".backward.output.0");
  row.status = PythonStatus::skip;
  row.message = std::move(message);
  row.verdict = PrecheckVerdict::skip;
  row.reason = std::move(reason);
  return row;
}

void ResultFiles::File::open(const std::string& name, bool create) {
  const Descriptor& opened = descriptor.emplace(
      ::open(name.c_str(), O_RDWR | O_CLOEXEC | O_APPEND | (create ? O_CREAT | O_EXCL : 0), 0644));
  struct stat facts = {};
  if (opened.get() < 0 || ::fstat(opened.get(), &facts) != 0)
    throw IoError(display(name), std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) throw IoError(display(name), "not a regular file");
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw IoError(display(name), "another process is writing it");
  path = name;
  size = static_cast<std::uint64_t>(facts.st_size);
}

void ResultFiles::File::append(std::string_view text) {
  write_all(descriptor->get(), text, display(path));
  size += text.size();
}

void ResultFiles::File::cut(std::uint64_t to) {
  if (::ftruncate(descriptor->get(), static_cast<off_t>(to)) != 0)
    throw IoError(display(path), std::strerror(errno));
  size = to;
}

void ResultFiles::File::cut_quietly(std::uint64_t to) noexcept {
  if (::ftruncate(descriptor->get(), static_cast<off_t>(to)) == 0) size = to;
}

ResultFiles ResultFiles::create(const std::string& folder, const std::string& time,
                                const ResultStyle& style) {
  ResultFiles files;
  files.time_ = time;
  files.style_ = style;
  files.result_.open(path_of(folder + "/", kResultStem, time), true);
  try {
    files.details_.open(path_of(folder + "/", kDetailsStem, time), true);
    files.details_.append(header(columns_of(kDetailsColumns, kOurDetailsColumns, style)));
    files.result_.append(header(columns_of(kResultColumns, kOurResultColumns, style)));
  } catch (...) {
    ::unlink(files.result_.path.c_str());
    if (!files.details_.path.empty()) ::unlink(files.details_.path.c_str());
    throw;
  }
  return files;
}

ResultFiles ResultFiles::resume(const std::string& result, ResultStyle style) {
  const std::size_t slash = result.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : result.substr(0, slash + 1);
  const std::string name = result.substr(folder.size());
  const bool is_named =
      name.size() == kResultStem.size() + kTimeDigits + kEnding.size() && name.starts_with(kResultStem) &&
      name.ends_with(kEnding) &&
      name.find_first_not_of("0123456789", kResultStem.size()) == kResultStem.size() + kTimeDigits;
  if (!is_named) {
    throw UsageError("When continue acc_check, please do not modify the result csv name: '" + display(name) +
                     "' is not accuracy_checking_result_ and 14 digits");
  }
  ResultFiles files;
  files.time_ = name.substr(kResultStem.size(), kTimeDigits);
  files.result_.open(result, false);
  files.details_.open(path_of(folder, kDetailsStem, files.time_), false);
  style.ours = has_our_columns(files.result_.path, kResultColumns, kOurResultColumns);
  if (style.ours != has_our_columns(files.details_.path, kDetailsColumns, kOurDetailsColumns))
    throw FormatError(display(files.details_.path), "its columns do not match those of the result file");
  files.style_ = style;

  bool is_header = true;
  const std::uint64_t result_end = each_row_end(*open_file(files.result_.path), [&](const RowEnd& row) {
    if (!std::exchange(is_header, false)) files.finished_.emplace(row.first);
  });
  // Details are written before the result, so that an unfinished operation is at the end.
  is_header = true;
  std::uint64_t details_end = 0;
  each_row_end(*open_file(files.details_.path), [&](const RowEnd& row) {
    const std::size_t forward = row.first.rfind(".forward.output.");
    const std::size_t direction =
        forward != std::string_view::npos ? forward : row.first.rfind(".backward.output.");
    if (std::exchange(is_header, false) || files.finished_.contains(row.first.substr(0, direction)))
      details_end = row.end;
  });
  files.result_.cut(result_end);
  files.details_.cut(details_end);
  return files;
}

std::string ResultFiles::details_text(const OperationReport& report) const {
  std::string text;
  std::vector<std::string> fields;
  for (const OutputRow& row : report.rows) {
    if (row.only_ours && !style_.ours) continue;
    fields = {row.name, or_blank(row.reference_dtype), or_blank(row.device_dtype), or_blank(row.shape)};
    for (const FigureValue& figure : row.figures) fields.push_back(spelled_figure(figure));
    fields.emplace_back(status_word(row.status, style_.selection));
    fields.push_back(row.message);
    if (style_.ours) {
      fields.emplace_back(verdict_word(row.verdict));
      fields.push_back(row.reason);
    }
    if (style_.steps) fields.push_back(std::to_string(report.step));
    append_row(text, fields);
  }
  return text;
}

std::string ResultFiles::result_text(const OperationReport& report) const {
  std::vector<std::string> fields = {report.name, std::string(status_word(report.forward, style_.selection)),
                                     std::string(status_word(report.backward, style_.selection))};
  // An exception without a text still has a message.
  const bool skipped = report.forward == PythonStatus::skip;
  if (!report.message.empty() || skipped || style_.ours) fields.push_back(report.message);
  if (style_.ours) {
    fields.emplace_back(verdict_word(report.forward_verdict));
    fields.emplace_back(verdict_word(report.backward_verdict));
    fields.push_back(report.reason);
  }
  if (style_.steps) fields.push_back(std::to_string(report.step));
  std::string text;
  append_row(text, fields);
  return text;
}

void ResultFiles::add(const OperationReport& report) {
  const std::uint64_t details_size = details_.size;
  const std::uint64_t result_size = result_.size;
  try {
    details_.append(details_text(report));
    result_.append(result_text(report));
  } catch (const Error&) {
    // The files contain an operation completely or not at all. If its rows cannot be cut off now, a resumed
    // run does it.
    details_.cut_quietly(details_size);
    result_.cut_quietly(result_size);
    throw;
  }
  finished_.insert(report.name);
}

void ResultFiles::add_compared(const std::string& header, const std::string& lines) {
  if (compared_.path.empty()) {
    const std::string folder =
        result_.path.substr(0, result_.path.size() - time_.size() - kResultStem.size() - kEnding.size());
    compared_.open(path_of(folder, kComparedStem, time_), true);
  }
  const std::uint64_t size = compared_.size;
  try {
    compared_.append(size == 0 ? header + lines : lines);
  } catch (const Error&) {
    compared_.cut_quietly(size);
    throw;
  }
}

}  // namespace msprobe::precheck
