// SPDX-License-Identifier: Apache-2.0
#include "support/text_pool.hpp"

#include <algorithm>
#include <cstring>

#include "support/error.hpp"

namespace msprobe {

std::uint32_t TextPool::intern(std::string_view text) {
  const auto text_of = [this](std::uint32_t number) { return at(number); };
  std::uint32_t number = interned_.find(text, text_of);
  if (number != TextIndex::kNone) return number;
  number = add(text);
  interned_.add(number, text_of);
  return number;
}

std::uint32_t TextPool::add(std::string_view text) {
  // Each byte holds seven bits of the length; the last one is below 128.
  char length[10];
  std::size_t digits = 0;
  std::size_t left = text.size();
  for (; left >= 128; left >>= 7) length[digits++] = static_cast<char>(128 | (left & 127));
  length[digits++] = static_cast<char>(left);

  const std::size_t size = digits + text.size();
  if (size > room_ - free_) {
    if (blocks_.size() == kMostBlocks) throw FormatError("the texts of one dump need more than 16 GiB");
    room_ = blocks_.empty() && size <= kFirstBlock ? kFirstBlock : kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(std::max(room_, size)));
    free_ = 0;
  }
  char* const place = blocks_.back().get() + free_;
  std::memcpy(place, length, digits);
  if (!text.empty()) std::memcpy(place + digits, text.data(), text.size());
  const auto number = static_cast<std::uint32_t>((blocks_.size() - 1) << kUnitBits | free_ / kUnit);
  free_ = std::min(room_, (free_ + size + kUnit - 1) / kUnit * kUnit);
  return number;
}

std::uint32_t TextTable::find(std::string_view text) const {
  return index_.find(text, [this](std::uint32_t number) { return at(number); });
}

std::uint32_t TextTable::intern(std::string_view text) {
  if (const std::uint32_t known = find(text); known != TextIndex::kNone) return known;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.push_back(pool_.add(text));
  index_.add(number, [this](std::uint32_t each) { return at(each); });
  return number;
}

}  // namespace msprobe
