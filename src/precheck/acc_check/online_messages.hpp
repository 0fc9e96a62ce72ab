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

/// A text in, line by line.
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

/// What the first message asks for.
struct OnlineStart {
  std::string folder;  // of the results
  std::string cases;   // where calls that are not right are saved
  std::string python;  // for the runner
  std::string device;  // of the references: "cpu", "cuda:1"
  double time_limit = 0;
  bool compare = false;  // write the table of `compare`, too
  int tensors = -1;      // descriptors; negative: there are none
  int replies = -1;
  CallLists lists;
  std::vector<std::pair<std::string, std::string>> operations;  // types and names of those that may come
};

/// FormatError; where to reply is known then if the message says so.
void read_online_start(const std::string& line, OnlineStart& start);

/// What may come behind it.
struct OnlineMessage {
  enum class Kind : std::uint8_t { call, backward, skipped, unused, step, end };
  Kind kind = Kind::call;
  std::uint64_t id = 0;    // of the call; of a step its number
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
  std::string reason;      // of what is skipped; empty: the lists have it
  std::optional<std::string> place;  // of the operation, if it is told with this call
  std::string where;
  std::vector<std::string> frames;
};

/// FormatError.
OnlineMessage read_online_message(std::string_view line);

}  // namespace msprobe::precheck
