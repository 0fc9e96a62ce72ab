// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/csv_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/error.hpp"
#include "support/output_file.hpp"

namespace msprobe::collector::monitor {
namespace {

constexpr std::size_t kLongestLine = 4096;

}  // namespace

void AppendedFile::open(const std::string& path, bool lines) {
  close();
  path_ = path;
  // A pipe or device at this path must not make the training wait.
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) throw IoError(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) {
    close();
    throw IoError(path, "is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (lines) cut_half_line();
}

void AppendedFile::close() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  size_ = 0;
}

std::string AppendedFile::first_line() const {
  std::array<char, kLongestLine> begin;
  const ssize_t size = ::pread(descriptor_, begin.data(), begin.size(), 0);
  const std::string_view text(begin.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  const std::size_t end = text.find('\n');
  return std::string(text.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

void AppendedFile::cut_half_line() {
  std::array<char, kLongestLine> last;
  const std::uint64_t from = size_ - std::min<std::uint64_t>(size_, last.size());
  const ssize_t size = ::pread(descriptor_, last.data(), last.size(), static_cast<off_t>(from));
  const std::string_view text(last.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (text.empty() || text.back() == '\n') return;
  const std::size_t end = text.rfind('\n');
  if (end == std::string_view::npos && from > 0) return;
  const std::uint64_t whole = from + (end == std::string_view::npos ? 0 : end + 1);
  if (::ftruncate(descriptor_, static_cast<off_t>(whole)) == 0) size_ = whole;
}

void AppendedFile::append(std::string_view bytes) {
  try {
    write_all(descriptor_, bytes, path_);
  } catch (const Error&) {
    if (::ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) close();
    throw;
  }
  size_ += bytes.size();
}

CsvSeries::CsvSeries(std::string folder, std::string prefix, std::uint64_t first_step,
                     std::uint64_t steps_per_file)
    : folder_(std::move(folder)),
      prefix_(std::move(prefix)),
      first_step_(first_step),
      steps_per_file_(steps_per_file) {}

std::string CsvSeries::path_of(std::uint64_t begin, std::uint64_t end) const {
  return folder_ + "/" + prefix_ + std::to_string(begin) + "-" + std::to_string(end - 1) + ".csv";
}

void CsvSeries::open_for(std::uint64_t step, std::string_view header) {
  const std::uint64_t since = step < first_step_ ? step : step - first_step_;
  begin_ = step - since % steps_per_file_;
  end_ = begin_ + steps_per_file_;
  file_.open(path_of(begin_, end_), true);
  if (!file_.empty() && file_.first_line() != header && begin_ != step) file_.open(path_of(step, end_), true);
  header_ = header;
}

void CsvSeries::append(std::uint64_t step, std::string_view header, std::string_view rows) {
  if (!file_.is_open() || step < begin_ || step >= end_ || header != header_) open_for(step, header);
  if (!file_.empty()) {
    file_.append(rows);
    return;
  }
  std::string begin(header);
  begin += rows;
  file_.append(begin);
}

}  // namespace msprobe::collector::monitor
