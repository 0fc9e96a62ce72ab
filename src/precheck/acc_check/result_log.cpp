// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/result_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "precheck/result_files/spelling.hpp"
#include "report/cell_text.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kResultName = "accuracy_checking_result_";
constexpr std::string_view kDetailsName = "accuracy_checking_details_";
constexpr std::string_view kResultTitles = "API name,Forward Test Success,Backward Test Success,Message";
constexpr std::string_view kDetailsTitles =
    "API Name,Bench Dtype,DEVICE Dtype,Shape,余弦相似度,最大绝对误差,双百指标,双千指标,双万指标,二进制一致错误率,误差均衡性,均方根误差,"
    "小值域错误占比,相对误差最大值,相对误差平均值,inf/nan错误率,相对误差错误率,绝对误差错误率,ULP误差最大值,ULP误差平均值,"
    "ULP误差大于阈值占比,Status,Message";
constexpr std::string_view kOurTitles = ",Verdict,Reason";
constexpr std::size_t kTimeDigits = 14;

/// As Python's csv module quotes.
void add_field(std::string& line, std::string_view text, const LogStyle& style) {
  const std::string safe = style.ours ? report::safe_text(text) : std::string(text);
  if (!line.empty()) line += ',';
  if (safe.find_first_of(",\"\r\n") == std::string::npos) {
    line += safe;
    return;
  }
  line += '"';
  for (const char c : safe) {
    line += c;
    if (c == '"') line += c;
  }
  line += '"';
}

std::string_view or_blank(const std::string& text) {
  return text.empty() ? std::string_view(" ") : std::string_view(text);
}

/// Where the records of a csv file end, read as far as it is whole.
class Records {
 public:
  explicit Records(const ByteSource& file) : file_(file), buffer_(std::size_t{1} << 16) {}

  /// The first field of the next record that has its line end.
  bool next(std::string& first) {
    first.clear();
    bool quoted = false;
    bool in_first = true;
    for (;;) {
      const int byte = get();
      if (byte < 0) return false;
      const char c = static_cast<char>(byte);
      if (c == '"') quoted = !quoted;
      if (!quoted && c == '\n') {
        if (first.ends_with('\r')) first.pop_back();
        end_ = at_;
        return true;
      }
      if (!quoted && c == ',') in_first = false;
      if (in_first && c != '"' && first.size() < kMaxName) first += c;
    }
  }
  /// Behind the last record.
  std::uint64_t end() const { return end_; }

 private:
  static constexpr std::size_t kMaxName = 65536;

  int get() {
    if (at_ == file_.size()) return -1;
    if (at_ >= begin_ + filled_) {
      begin_ = at_;
      filled_ = std::min<std::uint64_t>(buffer_.size(), file_.size() - at_);
      file_.read_at(begin_, std::span(buffer_).first(filled_));
    }
    return std::to_integer<int>(buffer_[at_++ - begin_]);
  }

  const ByteSource& file_;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0;
  std::uint64_t filled_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t end_ = 0;
};

/// `Torch.exp.0` of `Torch.exp.0.forward.output.1`.
std::string_view call_of(std::string_view row) {
  for (const std::string_view word : {".forward.output.", ".backward.output."}) {
    if (const std::size_t at = row.rfind(word); at != std::string_view::npos) return row.substr(0, at);
  }
  return row;
}

}  // namespace

ResultLog::ResultLog(ResultLog&& other) noexcept
    : style_(other.style_),
      time_(std::move(other.time_)),
      result_(std::exchange(other.result_, {})),
      details_(std::exchange(other.details_, {})),
      done_(std::move(other.done_)) {}

ResultLog::~ResultLog() {
  for (const File* file : {&result_, &details_}) {
    if (file->descriptor >= 0) ::close(file->descriptor);
  }
}

void ResultLog::open(File& file, const std::string& path, int flags) {
  file.path = path;
  file.descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0644);
  if (file.descriptor < 0) throw IoError(display(path), std::strerror(errno));
}

void ResultLog::cut(File& file, std::uint64_t size) {
  if (::ftruncate(file.descriptor, static_cast<off_t>(size)) != 0)
    throw IoError(display(file.path), std::strerror(errno));
  file.size = size;
}

void ResultLog::append(File& file, std::string_view text) {
  std::uint64_t at = file.size;
  while (!text.empty()) {
    const ssize_t written = ::pwrite(file.descriptor, text.data(), text.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int problem = errno;
      // What is there of the row says nothing.
      if (::ftruncate(file.descriptor, static_cast<off_t>(file.size)) != 0) errno = problem;
      throw IoError(display(file.path), std::strerror(problem));
    }
    at += static_cast<std::uint64_t>(written);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  file.size = at;
}

ResultLog ResultLog::create(const std::string& folder, const std::string& time, const LogStyle& style) {
  ResultLog log(style, time);
  const auto path = [&](std::string_view name) { return fmt::format("{}/{}{}.csv", folder, name, time); };
  const std::string ours(style.ours ? kOurTitles : "");
  open(log.result_, path(kResultName), O_CREAT | O_EXCL);
  try {
    open(log.details_, path(kDetailsName), O_CREAT | O_EXCL);
  } catch (const IoError&) {
    ::unlink(log.result_.path.c_str());
    throw;
  }
  append(log.result_, fmt::format("{}{}{}{}", kMark, kResultTitles, ours, kLineEnd));
  append(log.details_, fmt::format("{}{}{}{}", kMark, kDetailsTitles, ours, kLineEnd));
  return log;
}

ResultLog ResultLog::resume(const std::string& result_csv, const LogStyle& style) {
  const std::filesystem::path path(result_csv);
  const std::string name = path.filename().string();
  const std::string time = name.size() == kResultName.size() + kTimeDigits + 4 && name.starts_with(kResultName) &&
                                   name.ends_with(".csv")
                               ? name.substr(kResultName.size(), kTimeDigits)
                               : "";
  if (time.empty() || !std::all_of(time.begin(), time.end(), [](char c) { return c >= '0' && c <= '9'; }))
    throw UsageError(display(result_csv) +
                     ": only a file that is called accuracy_checking_result_ and a time can be gone on with");
  ResultLog log(style, time);
  const std::filesystem::path details = path.parent_path() / fmt::format("{}{}.csv", kDetailsName, time);
  open(log.result_, result_csv, 0);
  open(log.details_, details.string(), 0);
  log.read_results();
  log.read_details();
  return log;
}

void ResultLog::read_results() {
  const auto source = open_file(result_.path);
  Records records(*source);
  std::string name;
  const std::string title = std::string(kMark) + "API name";
  if (!records.next(name) || name != title) throw FormatError(result_.path, "it is no result of a pre-check");
  while (records.next(name)) done_.insert(name);
  cut(result_, records.end());
}

void ResultLog::read_details() {
  const auto source = open_file(details_.path);
  Records records(*source);
  std::string name;
  const std::string title = std::string(kMark) + "API Name";
  if (!records.next(name) || name != title) throw FormatError(details_.path, "it is no result of a pre-check");
  std::uint64_t whole = records.end();
  while (records.next(name)) {
    if (done_.contains(call_of(name))) whole = records.end();
  }
  cut(details_, whole);
}

void ResultLog::add(const CallResult& result) {
  std::string details;
  for (const OutputRow& row : result.rows) {
    if (row.only_ours && !style_.ours) continue;
    std::string line;
    add_field(line, row.name, style_);
    for (const std::string* text : {&row.reference_dtype, &row.device_dtype, &row.shape})
      add_field(line, or_blank(*text), style_);
    for (const FigureValue& figure : row.figures) add_field(line, spelled_figure(figure), style_);
    add_field(line, status_word(row.status, style_.selection), style_);
    add_field(line, row.message, style_);
    if (style_.ours) {
      add_field(line, verdict_word(row.verdict), style_);
      add_field(line, row.reason, style_);
    }
    details += line;
    details += kLineEnd;
  }
  std::string line;
  add_field(line, result.name, style_);
  add_field(line, status_word(result.forward.status, style_.selection), style_);
  add_field(line, status_word(result.backward.status, style_.selection), style_);
  const bool told = !result.message.empty() || result.forward.status == Status::skip;
  if (told || style_.ours) add_field(line, result.message, style_);
  if (style_.ours) {
    add_field(line, verdict_word(result.verdict()), style_);
    add_field(line, result.reason, style_);
  }
  line += kLineEnd;
  // The details first: an operation that has a result has them all.
  const std::uint64_t before = details_.size;
  append(details_, details);
  try {
    append(result_, line);
  } catch (const IoError&) {
    cut(details_, before);
    throw;
  }
}

}  // namespace msprobe::precheck
