// SPDX-License-Identifier: Apache-2.0
// Bytes that wait on the disk until they are needed again, in a file without a name that disappears with the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/output_file.hpp"

namespace msprobe {

/// Adding and reading are thread-safe.
class SpillFile {
 public:
  /// `output`: the file that finally receives the bytes. The spill file is in its folder, where there must be
  /// room for the bytes anyway, and is created by the first add(); for "-" it is in the folder for temporary
  /// files.
  explicit SpillFile(std::string output) : output_(std::move(output)) {}

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };
  /// Throws IoError if there is no room.
  Piece add(std::string_view bytes);
  std::string read(const Piece& piece);

 private:
  std::string output_;
  std::mutex mutex_;
  std::optional<OutputFile> file_;
};

}  // namespace msprobe
