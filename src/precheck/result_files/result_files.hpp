// SPDX-License-Identifier: Apache-2.0
// The files of a pre-check. Each operation is written when it is finished, so that it stays whatever happens
// later.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "precheck/judgement/output.hpp"
#include "precheck/result_files/spelling.hpp"
#include "support/descriptor.hpp"

namespace msprobe::precheck {

/// The outputs of a call that contain NaN or infinities.
enum class CallOverflow : std::uint8_t { none, both, reference, device };

/// The final results of one operation.
struct OperationReport {
  std::string name;  // "Torch.matmul.0"
  PythonStatus forward = PythonStatus::none;
  PythonStatus backward = PythonStatus::none;
  std::string message;  // the Python tool's
  PrecheckVerdict forward_verdict = PrecheckVerdict::none;
  PrecheckVerdict backward_verdict = PrecheckVerdict::none;
  std::string reason;  // ours
  std::vector<OutputRow> rows;
  bool excluded = false;                 // a rule, or the user, wants it not called
  std::uint64_t step = 0;                // of a running training
  std::optional<CallOverflow> overflow;  // if it was looked for
};

/// A row that says why a direction was not judged, as the Python tool has it.
OutputRow skipped_row(std::string_view operation, CallDirection direction, std::string message,
                      std::string reason);

struct ResultStyle {
  Selection selection = Selection::release_26;
  bool ours = true;    // columns after the Python tool's: Verdict and Reason
  bool steps = false;  // a column after these: Step
};

/// `{folder}/accuracy_checking_result_{time}.csv` and `..._details_{time}.csv`: UTF-8 with a mark, CRLF. One
/// process writes at a time.
class ResultFiles {
 public:
  /// Creates both files with only their headers. IoError if one exists already or cannot be made.
  static ResultFiles create(const std::string& folder, const std::string& time, const ResultStyle& style);
  /// Continues the file `result` (accuracy_checking_result_{14 digits}.csv) and the details file next to it.
  /// Removes rows that were cut off, and rows of operations that were not finished. The files themselves show
  /// whether they have msprobe's columns. UsageError for another name, IoError for a file that is missing or
  /// that another process writes, FormatError for a file of another kind.
  static ResultFiles resume(const std::string& result, ResultStyle style);

  /// Adds all rows of an operation, or no row: an IoError leaves the files as they were before.
  void add(const OperationReport& report);
  /// Adds whole lines to a third file, `compare_result_{time}.csv`, which the first call makes; `header` goes
  /// before these lines. IoError likewise.
  void add_compared(const std::string& header, const std::string& lines);

  /// Names of the operations in the result file.
  const std::set<std::string, std::less<>>& finished() const { return finished_; }
  const std::string& result_path() const { return result_.path; }
  const std::string& details_path() const { return details_.path; }
  /// Empty if there is no such file.
  const std::string& compared_path() const { return compared_.path; }
  /// `YYYYmmddHHMMSS` of their names.
  const std::string& time() const { return time_; }
  const ResultStyle& style() const { return style_; }

 private:
  struct File {
    std::string path;
    std::optional<Descriptor> descriptor;
    std::uint64_t size = 0;

    void open(const std::string& name, bool create);
    void append(std::string_view text);
    void cut(std::uint64_t size);
    void cut_quietly(std::uint64_t size) noexcept;
  };

  ResultFiles() = default;
  std::string details_text(const OperationReport& report) const;
  std::string result_text(const OperationReport& report) const;

  File result_;
  File details_;
  File compared_;
  std::string time_;
  ResultStyle style_;
  std::set<std::string, std::less<>> finished_;
};

}  // namespace msprobe::precheck
