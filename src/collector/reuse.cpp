// SPDX-License-Identifier: Apache-2.0
#include "collector/reuse.hpp"

#include <array>
#include <cstring>
#include <utility>

#include "collector/checksum.hpp"

namespace msprobe::collector {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(const TensorView& view, const Identity& identity) {
  std::uint64_t hash = mix(reinterpret_cast<std::uintptr_t>(identity.data), identity.version);
  hash = mix(hash, static_cast<std::uint64_t>(view.dtype) << 8 | view.rank);
  for (std::size_t axis = 0; axis < view.rank; ++axis) {
    hash = mix(hash, static_cast<std::uint64_t>(view.shape[axis]));
    hash = mix(hash, static_cast<std::uint64_t>(view.strides[axis]));
  }
  return hash;
}

/// A hash of samples that are spread over all elements.
std::uint64_t samples_of(const TensorView& view) {
  constexpr std::uint64_t kSamples = 64;
  const std::size_t size = view.element_size();
  std::uint64_t hash = 0;
  for (std::uint64_t k = 0; k < kSamples; ++k) {
    // The first and the last element are among the samples.
    std::uint64_t index = view.count / kSamples * k + view.count % kSamples * k / kSamples;
    if (k == kSamples - 1) index = view.count - 1;
    std::int64_t offset = 0;
    for (std::size_t axis = view.rank; axis-- > 0;) {
      const auto length = static_cast<std::uint64_t>(view.shape[axis]);
      offset += static_cast<std::int64_t>(index % length) * view.strides[axis];
      index /= length;
    }
    std::array<std::uint64_t, 2> element = {};
    std::memcpy(element.data(), view.data + offset * static_cast<std::int64_t>(size), size);
    hash = mix(mix(hash, element[0]), element[1]);
  }
  return hash;
}

}  // namespace

struct ReuseCache::Known {
  /// The elements at a place, as a view shows them.
  struct RememberedElements {
    Identity identity;
    tensor::DType dtype;
    bool conjugate;
    bool negative;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    bool operator==(const RememberedElements&) const = default;
  };
  static RememberedElements elements_of(const TensorView& view, const Identity& identity) {
    return {identity,      view.dtype,     view.conjugate,
            view.negative, view.lengths(), {view.strides.begin(), view.strides.begin() + view.rank}};
  }

  RememberedElements elements;
  std::uint64_t samples;
  std::shared_ptr<const Owner> owner;
  Results results;
};

Results ReuseCache::find(const TensorView& view, const Identity& identity, Check check) {
  std::shared_ptr<const Known> known;
  {
    const std::lock_guard lock(mutex_);
    const auto found = table_.find(hash_of(view, identity));
    if (found == table_.end()) return {};
    known = found->second;
  }
  if (known->elements != Known::elements_of(view, identity) || !known->owner->alive()) return {};
  if (check == Check::samples) return known->samples == samples_of(view) ? known->results : Results{};
  if (!known->results.crc) return {};
  const std::uint32_t crc = crc32_of(view);
  if (crc == *known->results.crc) return known->results;
  return {std::nullopt, crc, nullptr};
}

void ReuseCache::keep(const TensorView& view, const Identity& identity, std::shared_ptr<const Owner> owner,
                      const Results& results) {
  auto fresh = std::make_shared<const Known>(
      Known{Known::elements_of(view, identity), samples_of(view), std::move(owner), results});
  std::shared_ptr<const Known> before;  // freed after the lock is released, like these
  Table all;
  const std::lock_guard lock(mutex_);
  if (table_.size() >= kMost) all.swap(table_);
  before = std::exchange(table_[hash_of(view, identity)], std::move(fresh));
}

void ReuseCache::clear() {
  Table before;
  const std::lock_guard lock(mutex_);
  before.swap(table_);
}

}  // namespace msprobe::collector
