// SPDX-License-Identifier: Apache-2.0
// Reuses results of tensors that are seen again: a program passes the same tensors from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

struct SavedFile;

/// The caller's object that keeps a tensor's elements unchanged; it is released with the last copy.
class Owner {
 public:
  explicit Owner(const msprobe_tensor& tensor)
      : owner_(tensor.owner), alive_(tensor.alive), release_(tensor.release) {}
  ~Owner() {
    if (release_ != nullptr) release_(owner_);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  /// True if the owner can be kept at all.
  bool keepable() const { return alive_ != nullptr && release_ != nullptr; }
  bool alive() const { return alive_(owner_) != 0; }

 private:
  void* owner_;
  int (*alive_)(void*);
  void (*release_)(void*);
};

struct Results {
  std::optional<Measured> measured;
  std::optional<std::uint32_t> crc;
  std::shared_ptr<SavedFile> file;  // that holds the elements; null: unknown
};

/// Identifies elements by their place and by how often they were changed there.
struct Identity {
  const std::byte* data = nullptr;  // the view's elements, or the original that they are a copy of
  std::uint64_t version = 0;
  bool operator==(const Identity&) const = default;
};

/// How to verify that elements are really unchanged.
enum class Check : std::uint8_t {
  samples,   // finds most writes that no version counts
  checksum,  // of all elements, for results that replace them from then on, as files do
};

class ReuseCache {
 public:
  /// Below this many bytes, measuring is cheaper than a lookup.
  static constexpr std::uint64_t kMinBytes = std::uint64_t{128} << 10;

  /// Finds results for these elements. With Check::checksum, their checksum is among them if results for this
  /// place were known.
  Results find(const TensorView& view, const Identity& identity, Check check);
  /// Keeps results, and keeps `owner` just as long.
  void keep(const TensorView& view, const Identity& identity, std::shared_ptr<const Owner> owner,
            const Results& results);
  void clear();

 private:
  struct Known;
  using Table = std::unordered_map<std::uint64_t, std::shared_ptr<const Known>>;  // by hash
  // At this number all are forgotten; a step of a large model has fewer.
  static constexpr std::size_t kMost = 65'536;

  // Not held while alive() and release() of owners are called.
  std::mutex mutex_;
  Table table_;
};

}  // namespace msprobe::collector
