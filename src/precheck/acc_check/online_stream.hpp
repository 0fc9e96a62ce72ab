// SPDX-License-Identifier: Apache-2.0
// One training that is judged by a process it did not start: its messages and tensors are files.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "precheck/acc_check/online_judge.hpp"
#include "precheck/acc_check/online_messages.hpp"
#include "precheck/runner/runner.hpp"
#include "precheck/standards/standards.hpp"
#include "support/byte_source.hpp"
#include "support/coverage.hpp"
#include "support/error.hpp"

namespace msprobe::precheck {

/// Settings for trainings that run on another machine, or that another process started.
struct OnlineSettings {
  std::string results;  // for the files of each
  std::string python;
  std::string device;  // of the references
  double time_limit = 0;
};

/// Operations of all trainings.
struct OnlineCounts {
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::size_t skips = 0;
  Coverage coverage;
};

/// The objects that all streams share.
struct OnlineDesk {
  const OnlineSettings& settings;
  const Standards& standards;
  Runner& runner;
  bool color = false;
  std::map<std::string, std::size_t> trainings = {};  // by rank: how many trainings have sent its calls
};

/// Other trainings may still begin this long after the last one has ended, as ranks of one training do.
inline constexpr std::chrono::seconds kLastBegin{5};

/// Judges everything that comes. At an interruption it reports its findings so far.
template <typename Streams>
OnlineCounts judge_streams(Streams& streams) {
  try {
    streams.run();
  } catch (const Interrupted&) {
    streams.finish();
    throw;
  }
  return streams.counts();
}

/// The process that wrote the files.
enum class OnlineWriter : std::uint8_t {
  training,  // messages.jsonl, and tensors.N for each step
  receiver,  // messages.0, messages.1, ..., and tensors.N for some calls of a step each
};

class OnlineStream final : public OnlineSource {
 public:
  /// `name`: for the user.
  OnlineStream(std::string folder, std::string name, OnlineWriter writer, OnlineDesk& desk);
  ~OnlineStream() override;
  OnlineStream(const OnlineStream&) = delete;
  OnlineStream& operator=(const OnlineStream&) = delete;

  /// Judges the messages that have come, for a while; false if none has. A fault in this training ends its
  /// stream with a warning. Throws Error if nothing can be judged, Interrupted.
  bool advance();
  /// Ends the stream, which will get no more messages.
  void finish();
  bool ended() const { return ended_; }
  /// Removes its own files, and the folder if that is empty then.
  void remove_all();
  void count(OnlineCounts& counts) const;

  std::shared_ptr<const ByteSource> tensors(std::uint64_t file) override;
  void release(const OnlineMessage& message) override;
  void reply(const std::string& /*json*/) override {}  // the training does not wait for a reply

 private:
  void advance_for_a_while(bool& any);
  bool next(std::string& line);
  void open_messages(const std::string& name);
  void close_messages();
  void begin(const std::string& line);
  void claim_results(const std::string& leaf);
  void remove_tensors(std::uint64_t file) const;
  void remove_judged();

  std::string folder_;
  std::string name_;
  OnlineWriter writer_;
  OnlineDesk& desk_;
  int descriptor_ = -1;
  std::uint64_t number_ = 0;  // of the file of messages
  std::optional<MessageReader> reader_;
  std::map<std::uint64_t, std::size_t> waiting_;  // by file of tensors: how many messages still need it
  std::optional<OnlineJudge> judge_;
  bool has_results_ = false;  // the stream has a folder for its results
  bool ended_ = false;
  std::string broken_;  // why the stream is not judged any more
};

}  // namespace msprobe::precheck
