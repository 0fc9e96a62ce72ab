// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "precheck/acc_check/online_judge.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(200);
// So long after the last one has ended others may begin, as ranks of one training.
constexpr auto kLastLook = std::chrono::seconds(5);
constexpr const char* kMessages = "messages.jsonl";

/// One training, or one rank of it.
class FolderStream final : public OnlineSource {
 public:
  FolderStream(std::string folder, const OnlineFolder& wanted, const Standards& standards, bool color)
      : folder_(std::move(folder)), wanted_(wanted), standards_(standards), color_(color) {}
  ~FolderStream() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  FolderStream(const FolderStream&) = delete;
  FolderStream& operator=(const FolderStream&) = delete;

  /// Judges what has come; false if nothing has. FormatError if there is something wrong with what was sent.
  bool advance() {
    std::string line;
    bool any = false;
    while (!ended_ && next(line)) {
      any = true;
      if (!judge_) {
        begin(line);
        continue;
      }
      OnlineMessage message = read_online_message(line);
      if (message.kind == OnlineMessage::Kind::end) {
        finish();
        remove_all();
      } else {
        judge_->take(std::move(message));
      }
    }
    return any;
  }
  void finish() {
    if (!ended_ && judge_) judge_->finish();
    ended_ = true;
  }
  bool ended() const { return ended_; }
  void count(OnlineCounts& counts) const {
    if (!judge_) return;
    counts.passes += judge_->of(Verdict::pass);
    counts.errors += judge_->of(Verdict::error);
    counts.warnings += judge_->of(Verdict::warning);
    counts.skips += judge_->of(Verdict::skip);
  }

  std::shared_ptr<const ByteSource> tensors(std::uint64_t file) override {
    try {
      return open_file_beneath(folder_, file_name(file));
    } catch (const IoError& error) {
      throw FormatError(error.what());
    }
  }
  void release(const OnlineMessage& message) override {
    if (message.kind != OnlineMessage::Kind::step) return;
    std::error_code ignored;
    std::filesystem::remove(folder_ + '/' + file_name(message.file), ignored);
  }
  void reply(const std::string& /*json*/) override {}  // nobody waits for it

 private:
  bool next(std::string& line) {
    try {
      if (!reader_) open_messages();
      return reader_->next(line);
    } catch (const IoError& error) {
      throw FormatError(error.what());
    }
  }

  /// Only a regular file is at its end instead of keeping its reader waiting.
  void open_messages() {
    const std::string path = folder_ + '/' + kMessages;
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat status = {};
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0)
      throw IoError(display(path), std::strerror(errno));
    if (!S_ISREG(status.st_mode)) throw IoError(display(path), "not a regular file");
    reader_.emplace(descriptor_);
  }

  static std::string file_name(std::uint64_t file) { return fmt::format("tensors.{}", file); }

  void begin(const std::string& line) {
    OnlineStart start;
    read_online_start(line, start);
    start.folder = start.cases = wanted_.results;
    start.python = wanted_.python;
    start.device = wanted_.device;
    start.time_limit = wanted_.time_limit;
    judge_.emplace(std::move(start), *this, standards_, color_);
  }

  /// Of its own files alone.
  void remove_all() {
    std::error_code ignored;
    for (const std::string& name : names_in(folder_, Named::regular_files)) {
      if (name == kMessages || name.starts_with("tensors."))
        std::filesystem::remove(folder_ + '/' + name, ignored);
    }
    std::filesystem::remove(folder_, ignored);
  }

  std::string folder_;
  const OnlineFolder& wanted_;
  const Standards& standards_;
  bool color_;
  int descriptor_ = -1;
  std::optional<MessageReader> reader_;
  std::optional<OnlineJudge> judge_;
  bool ended_ = false;
};

class FolderStreams {
 public:
  FolderStreams(const OnlineFolder& wanted, const Standards& standards, bool color)
      : wanted_(wanted), standards_(standards), color_(color) {}

  void run() {
    auto last = std::chrono::steady_clock::now();
    for (;;) {
      check_interrupt();
      bool any = look_for_new();
      bool all_ended = true;
      for (const auto& [name, stream] : streams_) {
        any = advance(name, *stream) || any;
        all_ended = all_ended && stream->ended();
      }
      const auto now = std::chrono::steady_clock::now();
      if (any) last = now;
      if (!streams_.empty() && all_ended && now - last >= kLastLook) return;
      if (!any) std::this_thread::sleep_for(kBetweenLooks);
    }
  }
  void finish() {
    for (const auto& [name, stream] : streams_) stream->finish();
  }
  OnlineCounts counts() const {
    OnlineCounts counts;
    for (const auto& [name, stream] : streams_) stream->count(counts);
    return counts;
  }

 private:
  /// What is wrong with one is no matter of the others.
  static bool advance(const std::string& name, FolderStream& stream) {
    try {
      return stream.advance();
    } catch (const FormatError& error) {
      log_warning(fmt::format("{}: {}: nothing of it is judged any more", display(name), error.what()));
      stream.finish();
    }
    return true;
  }

  bool look_for_new() {
    bool any = false;
    for (const std::string& name : names_in(wanted_.folder, Named::folders)) {
      const std::string folder = wanted_.folder + '/' + name;
      if (streams_.contains(name) || !path_exists(folder + '/' + kMessages)) continue;
      streams_.emplace(name, std::make_unique<FolderStream>(folder, wanted_, standards_, color_));
      log_info(fmt::format("online pre-check: {} begins", display(name)));
      any = true;
    }
    return any;
  }

  const OnlineFolder& wanted_;
  const Standards& standards_;
  bool color_;
  std::map<std::string, std::unique_ptr<FolderStream>> streams_;
};

}  // namespace

OnlineCounts judge_folder(const OnlineFolder& wanted, const Standards& standards, bool color) {
  FolderStreams streams(wanted, standards, color);
  try {
    streams.run();
  } catch (const Interrupted&) {
    streams.finish();
    throw;
  }
  return streams.counts();
}

}  // namespace msprobe::precheck
