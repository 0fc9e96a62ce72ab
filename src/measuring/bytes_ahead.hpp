// SPDX-License-Identifier: Apache-2.0
// How many bytes a comparison of dumps has still to read, for its progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "measuring/imports.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::measuring {

/// The sizes of dump.json files are known from the start, those of a rank's tensors once it was read: until
/// then the ranks that are left are taken to have as many as those that were.
class BytesAhead {
 public:
  /// Begins the phase. `progress` may be null; then nothing is counted.
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

/// What a tensor of this type and shape takes, as a dump.json spells both; 0 for what is none.
std::uint64_t tensor_bytes(std::string_view dtype, std::string_view shape);

}  // namespace msprobe::measuring
