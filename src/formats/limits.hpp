// SPDX-License-Identifier: Apache-2.0
// Limits that the readers of all formats share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace msprobe::formats {

inline constexpr std::size_t kMaxRank = 64;  // dimensions of a tensor, NumPy's own limit
inline constexpr std::uint64_t kMaxName = std::uint64_t{64} << 10;  // bytes of a tensor's

// The memory of a global of a pickle at its first mention: its place in the index, without its text.
inline constexpr std::uint64_t kPickleGlobalBytes = 200;

inline constexpr const char* kTooManyTensors = "refused: more tensors than a file of its size has";

/// The memory that a file may take for its structure, apart from the elements of its tensors. A few bytes of
/// a file can describe a value that takes much memory, so the limit depends on the size of the file.
class MemoryAllowance {
 public:
  explicit MemoryAllowance(std::uint64_t file_size) : left_(scaled(kLeast, 6, file_size)) {}

  /// False if less is left; the caller then makes nothing more of the file.
  bool take(std::uint64_t bytes) {
    const bool enough = bytes <= left_;
    left_ = enough ? left_ - bytes : 0;
    return enough;
  }
  /// For a tensor, and all that callers record, compare and write about it.
  bool take_tensor(std::size_t name_size, std::size_t rank) {
    return take(kTensor + 6 * std::uint64_t{name_size} + 80 * std::uint64_t{rank});
  }
  std::uint64_t left() const { return left_; }

  /// The bytes that the packed pickles of a file of that size may have together. PyTorch packs none.
  static std::uint64_t unpacked(std::uint64_t file_size) { return scaled(kLeast / 2, 4, file_size); }

 private:
  static constexpr std::uint64_t kLeast = std::uint64_t{24} << 20;
  static constexpr std::uint64_t kTensor = 1280;

  static std::uint64_t scaled(std::uint64_t least, std::uint64_t factor, std::uint64_t size) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    return size > (kMost - least) / factor ? kMost : least + factor * size;
  }

  std::uint64_t left_;
};

}  // namespace msprobe::formats
