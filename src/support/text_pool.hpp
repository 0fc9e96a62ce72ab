// SPDX-License-Identifier: Apache-2.0
// Keeps texts by number, in few bytes besides the texts themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

/// Finds the number of a text. The texts are stored elsewhere: `text_of(number)` returns them.
class TextIndex {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// The number of an equal text, or kNone.
  template <typename TextOf>
  std::uint32_t find(std::string_view text, TextOf&& text_of) const {
    if (slots_.empty()) return kNone;
    std::size_t slot = first_slot(text);
    while (slots_[slot] != kNone && text_of(slots_[slot]) != text) slot = next_slot(slot);
    return slots_[slot];
  }
  /// Adds the number of a text that is not there yet.
  template <typename TextOf>
  void add(std::uint32_t number, TextOf&& text_of) {
    constexpr std::size_t kFewest = 16;
    if (slots_.size() * 2 < (count_ + 1) * 3) {
      const std::vector<std::uint32_t> old =
          std::exchange(slots_, std::vector(std::max(kFewest, 2 * slots_.size()), kNone));
      for (const std::uint32_t each : old) {
        if (each != kNone) put(each, text_of(each));
      }
    }
    put(number, text_of(number));
    ++count_;
  }

 private:
  std::size_t first_slot(std::string_view text) const {
    return std::hash<std::string_view>{}(text) & (slots_.size() - 1);
  }
  std::size_t next_slot(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  void put(std::uint32_t number, std::string_view text) {
    std::size_t slot = first_slot(text);
    while (slots_[slot] != kNone) slot = next_slot(slot);
    slots_[slot] = number;
  }

  std::vector<std::uint32_t> slots_;  // their number is a power of two
  std::size_t count_ = 0;
};

/// Texts by numbers that are not consecutive; 0 is the empty text. Texts keep their address as long as the
/// pool lives.
class TextPool {
 public:
  TextPool() { intern({}); }
  /// The number of an equal text that was interned before, or of the text itself, which is then added.
  std::uint32_t intern(std::string_view text);
  /// Adds a text without looking for an equal one (row names nearly all differ).
  std::uint32_t add(std::string_view text);
  std::string_view at(std::uint32_t number) const {
    const char* text = blocks_[number >> kUnitBits].get() + kUnit * (number & ((1U << kUnitBits) - 1));
    std::size_t size = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*text++);
      size |= static_cast<std::size_t>(byte & 127) << shift;
      if (byte < 128) return {text, size};
    }
  }

 private:
  // A number contains the block, and the unit in it where the text is stored after its length.
  static constexpr std::size_t kUnit = 4;
  static constexpr std::size_t kUnitBits = 18;
  static constexpr std::size_t kBlock = kUnit << kUnitBits;
  static constexpr std::size_t kFirstBlock = std::size_t{4} << 10;  // enough for one entry of a dump
  static constexpr std::size_t kMostBlocks = std::size_t{1} << (32 - kUnitBits);

  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t room_ = 0;  // of the last block
  std::size_t free_ = 0;  // the first free byte
  TextIndex interned_;
};

/// Different texts, numbered from 0 (the empty text) in the order of arrival.
class TextTable {
 public:
  TextTable() { intern({}); }
  /// The number of the text, or TextIndex::kNone.
  std::uint32_t find(std::string_view text) const;
  /// The same, but adds a new text.
  std::uint32_t intern(std::string_view text);
  std::string_view at(std::uint32_t number) const { return pool_.at(texts_[number]); }
  std::size_t size() const { return texts_.size(); }

 private:
  TextPool pool_;
  std::vector<std::uint32_t> texts_;
  TextIndex index_;
};

}  // namespace msprobe
