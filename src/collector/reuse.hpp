// SPDX-License-Identifier: Apache-2.0
// Results of large tensors that are seen again: a program hands the same ones from call to call.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

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
};

class ReuseCache {
 public:
  /// Below this many bytes measuring is cheaper than asking.
  static constexpr std::uint64_t kMinBytes = std::uint64_t{128} << 10;

  /// What is known of these elements. Writes that no version counts are noticed by samples, mostly.
  Results find(const TensorView& view, std::uint64_t version);
  /// Keeps results, and `owner` as long as they are kept.
  void keep(const TensorView& view, std::uint64_t version, std::shared_ptr<const Owner> owner,
            const Results& results);
  void clear();

 private:
  struct Known {
    TensorView view;
    std::uint64_t version = 0;
    std::uint64_t samples = 0;
    std::shared_ptr<const Owner> owner;
    Results results;
  };
  static constexpr std::size_t kPlaces = 1024;

  // alive() and release() of owners are called without it.
  std::mutex mutex_;
  std::array<std::shared_ptr<const Known>, kPlaces> places_;
};

}  // namespace msprobe::collector
