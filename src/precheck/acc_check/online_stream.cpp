// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

// After this time, the other streams get their turn.
constexpr auto kLongestTurn = std::chrono::milliseconds(500);
constexpr const char* kMessages = "messages.jsonl";

std::string tensor_file(std::uint64_t number) {
  return fmt::format("tensors.{}", number);
}

std::string message_file(std::uint64_t number) {
  return fmt::format("messages.{}", number);
}

/// A file that is open only while it is read: a step may have more waiting calls than a process may have
/// files.
class ClosedFile final : public ByteSource {
 public:
  ClosedFile(std::string folder, std::string file) : folder_(std::move(folder)), file_(std::move(file)) {
    const std::shared_ptr<const ByteSource> opened = open();
    name_ = opened->name();
    size_ = opened->size();
  }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    open()->read_at(offset, out);
  }

 private:
  std::shared_ptr<const ByteSource> open() const { return open_file_beneath(folder_, file_); }

  std::string folder_;
  std::string file_;
  std::string name_;
  std::uint64_t size_ = 0;
};

}  // namespace

OnlineStream::OnlineStream(std::string folder, std::string name, OnlineWriter writer, OnlineDesk& desk)
    : folder_(std::move(folder)), name_(std::move(name)), writer_(writer), desk_(desk) {}

OnlineStream::~OnlineStream() {
  close_messages();
}

bool OnlineStream::advance() {
  bool any = false;
  try {
    advance_for_a_while(any);
  } catch (const FormatError& error) {
    broken_ = error.what();
    log_warning(fmt::format("{}: {}: no more of its calls are judged", display(name_), broken_));
    finish();
    any = true;
  }
  return any;
}

void OnlineStream::advance_for_a_while(bool& any) {
  const auto end = std::chrono::steady_clock::now() + kLongestTurn;
  std::string line;
  while (!ended_ && std::chrono::steady_clock::now() < end && next(line)) {
    any = true;
    if (!judge_) {
      begin(line);
      continue;
    }
    OnlineMessage message = read_online_message(line);
    if (message.kind == OnlineMessage::MessageKind::end) {
      finish();
      remove_all();
    } else {
      if (!has_results_ && !message.leaf.empty()) claim_results(message.leaf);
      judge_->take(std::move(message));
    }
  }
}

void OnlineStream::finish() {
  if (!ended_ && judge_) judge_->finish();
  ended_ = true;
}

void OnlineStream::count(OnlineCounts& counts) const {
  if (!broken_.empty())
    counts.coverage.miss("the data that a training sent cannot be read", name_ + ": " + broken_);
  if (!judge_) return;
  judge_->cover(counts.coverage);
  counts.errors += judge_->of(PrecheckVerdict::error);
  counts.warnings += judge_->of(PrecheckVerdict::warning);
  counts.skips += judge_->of(PrecheckVerdict::skip);
}

std::shared_ptr<const ByteSource> OnlineStream::tensors(std::uint64_t file) {
  try {
    auto opened = std::make_shared<const ClosedFile>(folder_, tensor_file(file));
    ++waiting_[file];
    remove_judged();
    return opened;
  } catch (const IoError& error) {
    throw FormatError(error.what());
  }
}

void OnlineStream::release(const OnlineMessage& message) {
  if (message.kind == OnlineMessage::MessageKind::step) {
    // The whole step was judged, and later tensors are in another file.
    if (writer_ == OnlineWriter::training) remove_tensors(message.file);
    for (const auto& [file, count] : waiting_) remove_tensors(file);
    waiting_.clear();
  } else if (const auto found = waiting_.find(message.file); found != waiting_.end() && found->second > 0) {
    --found->second;
    if (writer_ == OnlineWriter::receiver) remove_judged();
  }
}

void OnlineStream::remove_tensors(std::uint64_t file) const {
  std::error_code ignored;
  std::filesystem::remove(folder_ + '/' + tensor_file(file), ignored);
}

/// Removes the files of tensors that a newer file follows and whose messages were all judged.
void OnlineStream::remove_judged() {
  if (writer_ == OnlineWriter::training) return;
  std::erase_if(waiting_, [&](const auto& waiting) {
    const bool is_judged = waiting.second == 0 && waiting.first != waiting_.rbegin()->first;
    if (is_judged) remove_tensors(waiting.first);
    return is_judged;
  });
}

bool OnlineStream::next(std::string& line) {
  try {
    if (writer_ == OnlineWriter::training) {
      if (!reader_) open_messages(kMessages);
      return reader_->next(line);
    }
    for (;;) {
      const bool is_whole = path_exists(folder_ + '/' + message_file(number_ + 1));
      if (!reader_) open_messages(message_file(number_));
      if (reader_->next(line)) return true;
      // The writer began another file before this one was read to its end, so that this one is complete.
      if (!is_whole) return false;
      close_messages();
      std::error_code ignored;
      std::filesystem::remove(folder_ + '/' + message_file(number_++), ignored);
    }
  } catch (const IoError& error) {
    throw FormatError(error.what());
  }
}

/// Opens a regular file only: it ends, while another kind of file could keep its reader waiting.
void OnlineStream::open_messages(const std::string& name) {
  const std::string path = folder_ + '/' + name;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat status = {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
    throw IoError(display(path), std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw IoError(display(path), "not a regular file");
  reader_.emplace(descriptor_);
}

void OnlineStream::close_messages() {
  reader_.reset();
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void OnlineStream::begin(const std::string& line) {
  OnlineStart start;
  read_online_start(line, start);
  start.folder = start.cases = desk_.settings.results;
  start.python = desk_.settings.python;
  start.device = desk_.settings.device;
  start.time_limit = desk_.settings.time_limit;
  judge_.emplace(std::move(start), *this, desk_.runner, desk_.standards, desk_.color);
}

/// Gives a second training with the same rank another folder of results, next to that of the first.
void OnlineStream::claim_results(const std::string& leaf) {
  has_results_ = true;
  const std::size_t number = ++desk_.trainings[leaf];
  if (number == 1) return;
  const std::string folder = fmt::format("{}/training{}", desk_.settings.results, number);
  log_info(fmt::format("online pre-check: {} is training {} of {}: its results go to {}", display(name_),
                       number, display(leaf), display(folder)));
  judge_->set_training(number, folder);
}

void OnlineStream::remove_all() {
  std::error_code ignored;
  for (const std::string& name : names_in(folder_, WhichNames::regular_files)) {
    if (name.starts_with("messages.") || name.starts_with("tensors."))
      std::filesystem::remove(folder_ + '/' + name, ignored);
  }
  std::filesystem::remove(folder_, ignored);
}

}  // namespace msprobe::precheck
