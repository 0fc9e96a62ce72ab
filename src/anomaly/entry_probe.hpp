// SPDX-License-Identifier: Apache-2.0
// The badness of an entry while it is scanned, without a tree of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "anomaly/badness.hpp"
#include "support/json_scan.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {

/// A handler of scan_value() with the same result as judge_entry() has for the tree (without write-only
/// arguments). If that would need a table of names (because names are duplicate or hold escapes, or items
/// contain objects), the probe reports that it does not know.
class EntryProbe : public IgnoreTokens {
 public:
  /// False: ask judge_entry().
  bool known() const { return known_; }
  EntryBadness badness() const { return {inputs_, outputs_}; }
  /// The record of task nan_check for an operation: did the device raise NaN or Inf in it, if that is known?
  std::optional<bool> raised() const { return raised_; }
  /// Have both inputs and outputs a Max or Min that is a number, NaN, an infinity or a
  /// boolean?
  bool has_statistics() const { return known_inputs_ && known_outputs_; }

  void restart() { *this = EntryProbe(); }

  void open(bool object) {
    statistic_ = 0;
    ++depth_;
    if (depth_ < kItem) return;
    seen_[depth_] = 0;
    if (!object || section_ == nullptr) return;
    if (item_ == 0) {
      item_ = depth_;
    } else {
      known_ = false;
    }
  }
  void close(bool /*object*/) {
    if (item_ == depth_) item_ = 0;
    --depth_;
    if (depth_ == 1) section_ = nullptr;
  }

  void key(std::string_view raw, bool escaped) {
    if (escaped) known_ = false;
    if (depth_ == 1) {
      raised_next_ = raw == "is_nan";
      begin_section(raw);
    } else if (depth_ == 2) {
      note_name(raw);
    } else if (depth_ >= kItem && raw.size() == 3) {
      statistic_ = raw == "Max" ? 1 : raw == "Min" ? 2 : 0;
      if ((seen_[depth_] & statistic_) != 0) known_ = false;
      seen_[depth_] |= statistic_;
    }
  }
  void string(std::string_view raw, bool escaped) {
    if (!counts()) return;
    if (escaped) known_ = false;
    const Bad bad = dump::bad_text(raw, true);
    if (bad != 0 || parse_number(raw)) note_statistic();
    *section_ |= bad;
    statistic_ = 0;
  }
  void number(std::string_view text, const char* exponent) {
    if (depth_ == 1 && raised_next_) {
      const std::string_view digits = text.substr(
          0, exponent != nullptr ? static_cast<std::size_t>(exponent - text.data()) : text.size());
      raised_ = digits.find_first_not_of("-0.") != std::string_view::npos;
    }
    if (!counts()) return;
    note_statistic();
    const char first = text.front() == '-' ? text[1] : text.front();
    if (first == 'N') *section_ |= kNan;
    if (first == 'I') *section_ |= kInf;
    // Three digits of exponent, or hundreds before the point, may be too large for a double.
    const bool large = exponent != nullptr && exponent[1] != '-' && text.data() + text.size() - exponent > 3;
    if (large || text.size() > 300) known_ = false;
    statistic_ = 0;
  }
  void literal(char first) {
    if (counts() && first != 'n') note_statistic();
    statistic_ = 0;
  }

 private:
  static constexpr std::size_t kItem = 3;  // depth inside an item: entry, section, item
  static constexpr std::size_t kNames = 16;

  /// Is the value that comes a statistic that counts?
  bool counts() const { return statistic_ != 0 && section_ != nullptr; }

  void note_statistic() { (section_ == &outputs_ ? known_outputs_ : known_inputs_) = true; }

  void begin_section(std::string_view name) {
    const std::uint8_t bit = name == "output"         ? 1
                             : name == "input"        ? 2
                             : name == "input_args"   ? 4
                             : name == "input_kwargs" ? 8
                                                      : 0;
    if ((sections_ & bit) != 0) known_ = false;
    sections_ |= bit;
    section_ = bit == 0 ? nullptr : bit == 1 ? &outputs_ : &inputs_;
    names_ = 0;
  }

  void note_name(std::string_view name) {
    const auto end = name_.begin() + static_cast<std::ptrdiff_t>(names_);
    if (names_ == kNames || std::find(name_.begin(), end, name) != end) {
      known_ = false;
    } else {
      name_[names_++] = name;
    }
  }

  bool known_ = true;
  bool known_inputs_ = false;
  bool known_outputs_ = false;
  std::uint8_t statistic_ = 0;  // the key before was 1: Max, 2: Min
  std::uint8_t sections_ = 0;   // seen so far
  bool raised_next_ = false;    // the key before was the entry's is_nan
  std::optional<bool> raised_;
  Bad inputs_ = 0;
  Bad outputs_ = 0;
  Bad* section_ = nullptr;  // where bad values of the present section go
  std::size_t depth_ = 0;
  std::size_t item_ = 0;  // depth of the item that is an object
  std::size_t names_ = 0;
  std::array<std::string_view, kNames> name_{};       // of the items of the present section
  std::array<std::uint8_t, kMaxJsonDepth + 1> seen_;  // statistics of the objects that are open
};

}  // namespace msprobe::anomaly
