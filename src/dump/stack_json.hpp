// SPDX-License-Identifier: Apache-2.0
// stack.json: the code that called each entry. Two layouts: {entry: [frames]} and, since 8.1, {"0":
// [[entries], [frames]], …}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/byte_source.hpp"
#include "support/text_pool.hpp"

namespace msprobe::dump {

class StackTable {
 public:
  using Frames = std::vector<std::string>;  // innermost call first

  /// The frames of a dump entry, or nullptr. Valid as long as the table.
  const Frames* find(std::string_view entry) const;
  std::size_t size() const { return stacks_.size(); }

  std::uint32_t add_stack(Frames frames);
  void add_entry(std::string_view entry, std::uint32_t stack);

 private:
  static constexpr std::uint32_t kNoStack = UINT32_MAX;
  std::vector<Frames> stacks_;
  TextTable entries_;
  std::vector<std::uint32_t> stack_of_;  // of the entries, by number
};

/// Whether the frame's file belongs to the framework, that is, whether its path contains one of `framework`.
/// For a file in an installed package, only the part from `/site-packages/` on counts: a model may be
/// installed there as well as its framework.
bool is_framework_frame(std::string_view frame, const std::vector<std::string>& framework);

/// The innermost frame that does not belong to the framework, else the innermost one, on one line; empty if
/// `frames` is empty.
std::string user_frame(const std::vector<std::string>& frames, const std::vector<std::string>& framework);

/// A frame's line of code, of `FILE, line NUMBER, in FUNCTION: CODE`.
struct SourceLine {
  std::string_view file;
  std::string_view number;
  std::string_view code;  // may be empty
};
/// The parts of what user_frame() gave; nothing if it has another form.
std::optional<SourceLine> source_line(std::string_view frame);

/// Throws FormatError for broken JSON; values of another shape are skipped.
StackTable read_stack_json(const ByteSource& file);
/// Reads the file at `path`; nothing if it does not exist.
std::optional<StackTable> read_stacks_if_any(const std::string& path);

}  // namespace msprobe::dump
