// SPDX-License-Identifier: Apache-2.0
// Streaming reader of dump.json and debug.json: the file is never in memory as a whole.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "dump/entry.hpp"
#include "support/byte_source.hpp"

namespace msprobe::dump {

/// The keys beside `data`. Absent keys and keys that are not text are empty.
struct Header {
  std::string task;       // "statistics", "tensor", "structure", …
  std::string level;      // "L0", "L1", "mix", "debug"
  std::string framework;  // "pytorch", "mindspore", "mindtorch"
  bool has_data = false;
};

/// Called for each member of `data`, in file order. The entry is only valid during the call.
using EntryVisitor = std::function<void(std::string_view name, const Entry& entry)>;

/// Accepts what Python's json module writes: bare NaN, Infinity and -Infinity, integers of any length, any
/// key order. Throws FormatError with the byte offset for anything else: broken JSON, `data` that is not an
/// object, text that is not UTF-8, nesting beyond kMaxDepth, one entry larger than kMaxEntryMemory.
Header read_dump_json(const ByteSource& file, const EntryVisitor& visit);

inline constexpr int kMaxDepth = 404;  // 400 levels of a value, plus root, data, entry, section
inline constexpr std::size_t kMaxEntryMemory = std::size_t{256} << 20;

}  // namespace msprobe::dump
