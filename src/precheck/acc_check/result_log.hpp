// SPDX-License-Identifier: Apache-2.0
// The two result files of the pre-check while they grow: what is finished is on disk, and a run that was ended goes on
// where it stopped.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "precheck/acc_check/check.hpp"

namespace msprobe::precheck {

struct LogStyle {
  Selection selection = Selection::release_26;
  bool ours = true;  // our verdict and reason in columns of their own, texts that no spreadsheet takes for formulas
};

/// `accuracy_checking_result_TIME.csv` and `accuracy_checking_details_TIME.csv`.
class ResultLog {
 public:
  /// Both files anew. IoError, as where there are such files.
  static ResultLog create(const std::string& folder, const std::string& time, const LogStyle& style);
  /// Goes on with both files; what a killed run left half written behind the last finished operation is cut off.
  /// UsageError for other names, IoError, FormatError.
  static ResultLog resume(const std::string& result_csv, const LogStyle& style);

  ResultLog(ResultLog&& other) noexcept;
  ResultLog& operator=(ResultLog&&) = delete;
  ~ResultLog();

  /// All rows of a call or none. IoError, as on a full disk.
  void add(const CallResult& result);

  const std::set<std::string, std::less<>>& done() const { return done_; }
  const std::string& result_path() const { return result_.path; }
  const std::string& details_path() const { return details_.path; }
  /// What stands in the names of both.
  const std::string& time() const { return time_; }

 private:
  struct File {
    std::string path;
    int descriptor = -1;
    std::uint64_t size = 0;
  };
  ResultLog(const LogStyle& style, std::string time) : style_(style), time_(std::move(time)) {}
  static void open(File& file, const std::string& path, int flags);
  static void append(File& file, std::string_view text);
  static void cut(File& file, std::uint64_t size);
  void read_results();
  void read_details();

  LogStyle style_;
  std::string time_;
  File result_;
  File details_;
  std::set<std::string, std::less<>> done_;
};

}  // namespace msprobe::precheck
