// SPDX-License-Identifier: Apache-2.0
// Finds the names in a pickle by its opcodes alone. The scan builds no values, so no value can end it; it
// follows only strings that Python could use as names through the stack and the memo.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"

namespace msprobe::formats {

struct PickleScan {
  std::vector<PickleGlobal> globals;  // in order of first mention
  std::vector<bool> initialized;  // for each global: is it called with its initialiser, and not by NEWOBJ?
  std::uint64_t end = 0;          // the offset after STOP, or where the scan stops following opcodes
  std::string failure;            // why there may be more names than were found; empty: there are no more
  bool straddles = false;  // a value crosses the end of a frame: some readers of Python see other opcodes
  bool acts = false;       // it may call or change something before every reader of Python stops
  bool changes_globals = false;  // it changes a class or function that it names, not only objects
  bool calls_results = false;    // it calls the result of a call, or a persistent value
};

/// The scan's memory is that of an Allowance for `file_size`. After a limit is reached, the scan continues
/// with unknown strings and records a failure.
struct ScanLimits {
  std::uint64_t max_steps = 10'000'000;
  std::uint64_t max_stack = 4'000'000;
  std::size_t max_globals = 100'000;
  std::uint64_t file_size = 0;  // of the file that the pickle was packed in; 0: it is not packed
};

/// Follows the pickle at `offset` to its STOP, and the next ones if they begin before `until`, as one
/// Unpickler of Python reads them, which keeps its memo. The scan finds every name that Python would use
/// before it refuses a pickle. Malformed parts only make the scan more suspicious than Python.
PickleScan scan_pickle(const ByteSource& source, std::uint64_t offset, std::uint64_t until = 0,
                       const ScanLimits& limits = {});

/// Could Python import the name? Numbers or text that look like a name by chance seldom could be imported.
bool is_importable(const PickleGlobal& global);

}  // namespace msprobe::formats
