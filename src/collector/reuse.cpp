// SPDX-License-Identifier: Apache-2.0
#include "collector/reuse.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace msprobe::collector {
namespace {

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(const TensorView& view, std::uint64_t version) {
  std::uint64_t hash = mix(reinterpret_cast<std::uintptr_t>(view.data), version);
  hash = mix(hash, static_cast<std::uint64_t>(view.dtype) << 8 | view.rank);
  for (std::size_t axis = 0; axis < view.rank; ++axis) {
    hash = mix(hash, static_cast<std::uint64_t>(view.shape[axis]));
    hash = mix(hash, static_cast<std::uint64_t>(view.strides[axis]));
  }
  return hash;
}

bool same(const TensorView& a, const TensorView& b) {
  return a.data == b.data && a.dtype == b.dtype && a.rank == b.rank && a.conjugate == b.conjugate &&
         a.negative == b.negative && std::equal(a.shape.begin(), a.shape.begin() + a.rank, b.shape.begin()) &&
         std::equal(a.strides.begin(), a.strides.begin() + a.rank, b.strides.begin());
}

/// One number out of elements spread over all.
std::uint64_t samples_of(const TensorView& view) {
  constexpr std::uint64_t kSamples = 64;
  const std::size_t size = view.element_size();
  std::uint64_t hash = 0;
  for (std::uint64_t k = 0; k < kSamples; ++k) {
    // The first and the last are among them.
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

Results ReuseCache::find(const TensorView& view, std::uint64_t version) {
  std::shared_ptr<const Known> known;
  {
    const std::lock_guard lock(mutex_);
    known = places_[hash_of(view, version) % kPlaces];
  }
  if (!known || known->version != version || !same(known->view, view) || !known->owner->alive() ||
      known->samples != samples_of(view)) {
    return {};
  }
  return known->results;
}

void ReuseCache::keep(const TensorView& view, std::uint64_t version, std::shared_ptr<const Owner> owner,
                      const Results& results) {
  auto fresh =
      std::make_shared<const Known>(Known{view, version, samples_of(view), std::move(owner), results});
  std::shared_ptr<const Known> before;  // goes when the lock is gone
  const std::lock_guard lock(mutex_);
  before = std::exchange(places_[hash_of(view, version) % kPlaces], std::move(fresh));
}

void ReuseCache::clear() {
  std::array<std::shared_ptr<const Known>, kPlaces> before;
  const std::lock_guard lock(mutex_);
  before.swap(places_);
}

}  // namespace msprobe::collector
