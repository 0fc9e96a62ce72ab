// SPDX-License-Identifier: Apache-2.0
// Messages of a running training and the replies to it. data/precheck/PROTOCOL.md describes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/calls/plan.hpp"

namespace msprobe::precheck {

/// Reads a text line by line from a descriptor.
class MessageReader {
 public:
  explicit MessageReader(int descriptor) : descriptor_(descriptor) {}
  /// False at the end. FormatError for a line without end, IoError, Interrupted.
  bool next(std::string& line);

 private:
  int descriptor_;
  std::string buffer_;
  std::size_t searched_ = 0;
};

/// The settings in the first message.
struct OnlineStart {
  std::string folder;  // of the results
  std::string cases;   // where calls that are not right are saved
  std::string python;  // for the runner
  std::string device;  // of the references: "cpu", "cuda:1"
  double time_limit = 0;
  bool compare = false;  // write the table of `compare`, too
  int tensors = -1;      // descriptors; negative: none was given
  int replies = -1;
  CallLists lists;
  std::vector<std::pair<std::string, std::string>>
      operations;  // types and names of the operations that may come
};

/// Throws FormatError. `start` then has the descriptor for replies if the message names one.
void read_online_start(const std::string& line, OnlineStart& start);

/// One of the messages that follow.
struct OnlineMessage {
  enum class MessageKind : std::uint8_t { call, backward, skipped, unused, step, end };
  MessageKind kind = MessageKind::call;
  std::uint64_t id = 0;    // number of the call or of the step
  std::uint64_t step = 0;  // of a call
  ApiName api;             // likewise
  std::string leaf;        // likewise: "rank0", as folders of steps have it
  std::string entry;       // JSON
  dump::Entry json;        // the whole message
  dump::Entry::Index tensors = dump::Entry::kNone;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      blocks;              // its bytes in the file of tensors: begin, size
  std::uint64_t file = 0;  // of tensors, where there are several; of a step the one that is complete
  bool follows = false;    // a backward will come
  std::string reason;      // why the operation is skipped; empty: the lists say so
  std::optional<std::string> place;  // place of the operation, if this call carries it
  std::string where;
  std::vector<std::string> frames;
};

/// FormatError.
OnlineMessage read_online_message(std::string_view line);

}  // namespace msprobe::precheck
