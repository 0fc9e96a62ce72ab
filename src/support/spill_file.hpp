// SPDX-License-Identifier: Apache-2.0
// Bytes that wait on the disk until they are needed again, in a file without a name: it is gone with the
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

/// Any thread may add and read.
class SpillFile {
 public:
  /// `output`: what the bytes go to in the end. The file lies in its folder, as there is to be room, and is
  /// made when something is added; for "-" it lies with temporary files.
  explicit SpillFile(std::string output) : output_(std::move(output)) {}

  struct Piece {
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };
  /// IoError if there is no room.
  Piece add(std::string_view bytes);
  std::string read(const Piece& piece);

 private:
  std::string output_;
  std::mutex mutex_;
  std::optional<OutputFile> file_;
};

}  // namespace msprobe
