// SPDX-License-Identifier: Apache-2.0
// Files that rows are added to; a new file begins after a fixed number of steps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::collector::monitor {

/// An open file that is only appended to. The remains of a failed write are cut off again.
class AppendedFile {
 public:
  AppendedFile() = default;
  ~AppendedFile() { close(); }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  /// Throws IoError. `lines`: an incomplete last line, which a killed process left, is cut off.
  void open(const std::string& path, bool lines);
  void close() noexcept;
  bool is_open() const { return descriptor_ >= 0; }
  bool empty() const { return size_ == 0; }
  /// The text up to the end of the first line; empty if that is longer than any header.
  std::string first_line() const;
  /// Throws IoError; then the file is unchanged.
  void append(std::string_view bytes);

 private:
  void cut_half_line();

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// <folder>/<prefix><a>-<b>.csv: the rows of steps a to b. If the columns change within such a file, the next
/// file begins with the current step.
class CsvSeries {
 public:
  CsvSeries(std::string folder, std::string prefix, std::uint64_t first_step, std::uint64_t steps_per_file);

  /// `header` and `rows` are whole lines. Throws IoError.
  void append(std::uint64_t step, std::string_view header, std::string_view rows);

 private:
  void open_for(std::uint64_t step, std::string_view header);
  std::string path_of(std::uint64_t begin, std::uint64_t end) const;

  std::string folder_;
  std::string prefix_;
  std::uint64_t first_step_;
  std::uint64_t steps_per_file_;
  std::uint64_t end_ = 0;  // the step after the last one of the open file
  std::uint64_t begin_ = 0;
  std::string header_;
  AppendedFile file_;
};

}  // namespace msprobe::collector::monitor
