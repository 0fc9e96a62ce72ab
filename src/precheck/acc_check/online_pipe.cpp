// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_pipe.hpp"

#include <fcntl.h>

#include <string>
#include <utility>

#include "precheck/acc_check/online_judge.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::precheck {
namespace {

class PipeSource final : public OnlineSource {
 public:
  explicit PipeSource(const OnlineStart& start)
      : file_(std::make_shared<const ReceivedFile>(start.tensors)), replies_(start.replies) {
    // The runner must not inherit these descriptors.
    ::fcntl(start.tensors, F_SETFD, FD_CLOEXEC);
    ::fcntl(start.replies, F_SETFD, FD_CLOEXEC);
  }

  std::shared_ptr<const ByteSource> tensors(std::uint64_t /*file*/) override { return file_; }
  void release(const OnlineMessage& message) override {
    for (const auto& [begin, size] : message.blocks) file_->release(begin, size);
  }
  void reply(const std::string& json) override {
    static_cast<void>(write_all(replies_, json + '\n', "the training"));
  }

 private:
  std::shared_ptr<const ReceivedFile> file_;
  int replies_;
};

/// Replies why nothing can be judged. False if the training has ended.
bool reply_fatal(int replies, const std::string& reason) {
  JsonWriter json;
  json.open_object();
  json.member("fatal", reason);
  json.close();
  return write_all(replies, json.take() + '\n', "the training");
}

}  // namespace

bool judge_child_of_training(int messages, const Standards& standards, bool color) {
  MessageReader reader(messages);
  std::string line;
  if (!reader.next(line)) return true;
  OnlineStart start;
  try {
    read_online_start(line, start);
    if (start.tensors < 0) throw FormatError("the training", "sent a message without a file of tensors");
    PipeSource source(start);
    Runner runner(online_runner(start.python, start.device));
    OnlineJudge judge(start, source, runner, standards, color);
    while (reader.next(line)) {
      OnlineMessage message = read_online_message(line);
      if (message.kind == OnlineMessage::MessageKind::end) break;
      judge.take(std::move(message));
    }
    judge.finish();
  } catch (const Error& error) {
    if (start.replies < 0 || !reply_fatal(start.replies, error.what())) throw;
    return false;
  }
  return true;
}

}  // namespace msprobe::precheck
