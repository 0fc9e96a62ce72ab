// SPDX-License-Identifier: Apache-2.0
// The members of the outer objects of a large JSON file, one after the other, through a window that holds no
// more than one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "support/byte_source.hpp"
#include "support/json_scan.hpp"

namespace msprobe::dump {

/// The most memory that one value may take.
inline constexpr std::size_t kMaxEntryMemory = std::size_t{256} << 20;

class MemberStream {
 public:
  explicit MemberStream(const ByteSource& source);

  /// Steps into the next object: the root, or the value of a member. FormatError if the next value is not an
  /// object.
  void enter();
  /// Reads the name of the next member of the current object. Returns false at its end, and goes back to the
  /// object around it. At the end of the root nothing but blanks may follow.
  bool next(std::string& key);
  /// The first byte of the next value.
  char peek();

  /// Scans the value of the member. The text is valid until the next call.
  template <typename Handler>
  std::string_view value(Handler& handler) {
    return whole_value([&](Scan& scan, bool again) {
      if (again) handler.restart();
      return scan_value(scan, handler, kMaxJsonDepth - depth());
    });
  }
  std::string_view skip() {
    IgnoreTokens ignore;
    return value(ignore);
  }
  /// Makes `entry` the tree of the value, which is of the member `name`. It borrows the stream's text until
  /// the next call.
  std::string_view entry(Entry& entry, std::string_view name);
  /// The place in the file of the value that was scanned last.
  std::uint64_t value_offset() const { return value_offset_; }
  /// FormatError with the file and the place in it.
  [[noreturn]] void fail(const std::string& reason) const { fail(reason, current_); }

 private:
  std::size_t depth() const { return first_.size(); }
  std::uint64_t offset(const char* at) const {
    return begin_offset_ + static_cast<std::uint64_t>(at - buffer_.data());
  }
  /// Scans the value that comes next, again each time the window had to grow for it.
  template <typename ScanOnce>
  std::string_view whole_value(ScanOnce&& scan_once) {
    peek();
    for (bool again = false;; again = true) {
      Scan scan{current_, end_, nullptr};
      const ScanStatus status = scan_once(scan, again);
      if (status == ScanStatus::broken) fail(scan.reason, scan.at);
      if (status == ScanStatus::done) {
        const std::string_view text(current_, static_cast<std::size_t>(scan.at - current_));
        value_offset_ = offset(current_);
        current_ = scan.at;
        return text;
      }
      more();
    }
  }
  /// Makes the window reach further; FormatError if the file has no more.
  void more();
  [[noreturn]] void fail(const std::string& reason, const char* at) const;

  const ByteSource& source_;
  std::vector<char> buffer_;
  const char* current_ = nullptr;
  const char* end_ = nullptr;
  std::uint64_t begin_offset_ = 0;  // of the window in the file
  std::uint64_t next_ = 0;          // the first byte after the window
  std::uint64_t value_offset_ = 0;
  std::vector<bool> first_;  // by open object: no member seen yet
};

/// Makes `entry` the tree of a value that scan_value() accepted. The tree borrows the text. kScanPadding
/// bytes after the text must be readable, as they are in the window of a stream. Throws FormatError, naming
/// `file` and `name`, if the tree takes more than kMaxEntryMemory.
void build_entry(std::string_view text, Entry& entry, const std::string& file, std::string_view name);

/// The tree of a text that is one value, which it keeps. FormatError, naming `file`, for anything else.
Entry read_json(std::string_view text, const std::string& file, std::size_t max_depth = kMaxJsonDepth);

/// Reads the value at `offset` of the file, and keeps its text.
void read_entry_at(const ByteSource& file, std::uint64_t offset, std::uint64_t size, Entry& entry,
                   std::string_view name);

/// Appends the value of a string, given as the text between its quotes. Surrogates without a partner become
/// the bytes that an encoder without checks makes of them (three bytes that are not valid UTF-8).
void append_unescaped(std::string& out, std::string_view raw);

}  // namespace msprobe::dump
