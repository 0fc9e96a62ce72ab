// SPDX-License-Identifier: Apache-2.0
// Reads dump.json and debug.json as a stream: the file is never in memory as a whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "dump/member_stream.hpp"
#include "dump/training.hpp"
#include "support/byte_source.hpp"

namespace msprobe::dump {

/// The keys next to `data`. Missing keys and keys that are not text are empty.
struct Header {
  std::string task;                           // "statistics", "tensor", "structure", …
  std::string level;                          // "L0", "L1", "mix", "debug"
  std::string framework;                      // "pytorch", "mindspore", "mindtorch"
  std::string recorder;                       // "msprobe 1.2.3"; empty in dumps of other tools
  std::vector<std::string> scope;             // what a recording was limited to; empty: to nothing
  std::vector<std::string> list;              // likewise
  bool has_data = false;                      // false for a `data` that is null
  std::optional<std::string> data_directory;  // nothing if `dump_data_dir` is not a text
  Training training;

  bool is_mindspore() const { return framework == "mindspore"; }
};

/// Takes the value of a member of `data` from the stream.
using ValueVisitor = std::function<void(MemberStream& stream, std::string_view name)>;
/// The entry is only valid during the call.
using EntryVisitor = std::function<void(std::string_view name, const Entry& entry)>;

/// Calls `visit` for each member of `data`, in file order; names may come twice. Any key order is accepted.
/// Throws FormatError with the byte offset for broken JSON, `data` that is not an object, text that is not
/// UTF-8, nesting beyond kMaxJsonDepth, one value larger than kMaxEntryMemory.
Header read_values(const ByteSource& file, const ValueVisitor& visit);
/// The same, with each value as a tree.
Header read_dump_json(const ByteSource& file, const EntryVisitor& visit);

}  // namespace msprobe::dump
