// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that a comparison of dumps still has to read, for its progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace msprobe {
class Progress;
}

namespace msprobe::measuring {

/// The sizes of dump.json files are known from the start. The size of a rank's tensors is known only after
/// the rank was read; until then the remaining ranks are assumed to have as many bytes as the ranks read so
/// far.
class BytesAhead {
 public:
  /// Begins the phase. If `progress` is null, nothing is counted.
  BytesAhead(Progress* progress, std::size_t ranks, std::uint64_t json_bytes);

  bool wanted() const { return progress_ != nullptr; }
  void add_tensors(std::uint64_t bytes);
  void advance(std::uint64_t bytes);

 private:
  Progress* progress_;
  std::size_t ranks_;
  std::uint64_t json_bytes_;
  std::mutex mutex_;
  std::size_t ranks_read_ = 0;
  std::uint64_t tensor_bytes_ = 0;
};

/// The size in bytes of a tensor of this type and shape, as a dump.json spells both; 0 if they are not valid.
std::uint64_t tensor_bytes(std::string_view dtype, std::string_view shape);

}  // namespace msprobe::measuring
