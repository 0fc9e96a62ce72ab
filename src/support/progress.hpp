// SPDX-License-Identifier: Apache-2.0
// Progress of long work, shown on a terminal only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace msprobe {

enum class ProgressMode { automatic, always, never };

/// A status line on stderr: `label  45% [=====>    ] 1,234/2,745 rows  3.1 s left`. Counting is thread-safe
/// and cheap. One ticker thread draws, at most ten times a second, and only in the mode `always`, or
/// `automatic` if stderr is a terminal, TERM is not "dumb" and the log level is not quiet.
class Progress {
 public:
  explicit Progress(ProgressMode mode);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts a phase and ends the one before; `total` 0 means unknown.
  void begin(std::string label, std::uint64_t total, std::string unit);
  void advance(std::uint64_t done = 1);
  /// Sets the total of the phase when it is known better.
  void expect(std::uint64_t total);
  /// Clears the line.
  void end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The data of a status line. `total` 0 means unknown; the unit "B" shows sizes, an empty unit only the time.
struct ProgressState {
  std::string_view label;
  std::string_view unit;
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  double seconds = 0;  // since the phase began
};

/// The status line in at most `width` columns. If it is too long, the bar is dropped first, then the label is
/// cut in the middle.
std::string progress_line(const ProgressState& state, std::size_t width);

}  // namespace msprobe
