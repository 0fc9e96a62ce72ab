// SPDX-License-Identifier: Apache-2.0
// What a pickle names, found by its opcodes alone. No value is built, so nothing that a value may be ends the
// search; only the strings that Python could make a name of are followed over the stack and the memo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

struct PickleScan {
  std::vector<PickleGlobal> globals;  // in order of first mention
  std::vector<bool> initialized;      // of each: is it called with its initialiser, and not by NEWOBJ?
  std::uint64_t end = 0;              // behind STOP, or where the opcodes are followed no further
  std::string failure;                // why there may be more than was found; empty: Python finds no more
  bool straddles = false;             // its frames lie: some readers of Python see other opcodes
  bool acts = false;             // it may call or change something before every reader of Python gives it up
  bool changes_globals = false;  // a class or function that it names, and not an object
  bool calls_results = false;    // what a call has given, or a persistent id
};

/// Its memory is that of an Allowance for `file_size`. What comes behind a limit is searched with strings
/// unknown, and that is a failure.
struct ScanLimits {
  std::uint64_t max_steps = 10'000'000;
  std::uint64_t max_stack = 4'000'000;
  std::size_t max_globals = 100'000;
  std::uint64_t file_size = 0;  // of the file that the pickle was packed in; 0: it is not packed
};

/// Follows the pickle at `offset` to its STOP, and the next ones if they begin before `until`: as one
/// Unpickler of Python reads them, which keeps its memo. Whatever Python would name before it refuses a
/// pickle is found; what is malformed here and there only makes the search more suspicious than Python.
PickleScan scan_pickle(const ByteSource& source, std::uint64_t offset, std::uint64_t until = 0,
                       const ScanLimits& limits = {});

/// Could Python import it? What is made of numbers or text by chance is seldom spelt so.
bool is_importable(const PickleGlobal& global);

}  // namespace msprobe::formats
