// SPDX-License-Identifier: Apache-2.0
// Results of tensors that are seen again: a program hands the same ones from call to call.
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

/// What the caller says keeps a tensor's elements the same; released when the last copy goes.
class Owner {
 public:
  explicit Owner(const msprobe_tensor& tensor)
      : owner_(tensor.owner), alive_(tensor.alive), release_(tensor.release) {}
  ~Owner() {
    if (release_ != nullptr) release_(owner_);
  }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  /// Can it be kept at all?
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
  std::shared_ptr<SavedFile> file;  // that holds the elements; null: none is known
};

/// Elements, by where they are and how often they were changed there.
struct Identity {
  const std::byte* data = nullptr;  // what the view's elements are, or are a copy of
  std::uint64_t version = 0;
};

/// How it is made sure that elements which should be the same are.
enum class Check : std::uint8_t {
  samples,   // writes that no version counts are noticed mostly
  checksum,  // of all elements: for what stands for them from then on, as files do
};

class ReuseCache {
 public:
  /// Below this many bytes measuring is cheaper than asking.
  static constexpr std::uint64_t kMinBytes = std::uint64_t{128} << 10;

  /// What is known of these elements. With Check::checksum theirs is there if any were known at this place.
  Results find(const TensorView& view, const Identity& identity, Check check);
  /// Keeps results, and `owner` as long as they are kept.
  void keep(const TensorView& view, const Identity& identity, std::shared_ptr<const Owner> owner,
            const Results& results);
  void clear();

 private:
  struct Known;
  using Table = std::unordered_map<std::uint64_t, std::shared_ptr<const Known>>;  // by hash
  // Then all are forgotten: a step of a large model has fewer.
  static constexpr std::size_t kMost = 65'536;

  // alive() and release() of owners are called without it.
  std::mutex mutex_;
  Table table_;
};

}  // namespace msprobe::collector
