// SPDX-License-Identifier: Apache-2.0
#include "dump/member_stream.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"
#include "support/utf8.hpp"

namespace msprobe::dump {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
constexpr std::size_t kTextPadding = kScanPadding + 1;

/// The number that four hexadecimal digits stand for.
std::uint32_t hex4(const char* digits) {
  std::uint32_t code = 0;
  std::from_chars(digits, digits + 4, code, 16);
  return code;
}

class EntryBuilder : public IgnoreTokens {
 public:
  /// `source`: holds the value and lasts as long as the entry.
  EntryBuilder(Entry& entry, std::string_view source, const std::string& file, std::string_view name)
      : entry_(entry), file_(file), name_(name) {
    entry_.clear(source);
  }

  void open(bool object) {
    open_[depth_++] = entry_.open(object ? NodeKind::object : NodeKind::array);
    check();
  }
  void close(bool) { entry_.close(open_[--depth_]); }
  void key(std::string_view raw, bool escaped) { entry_.set_key(text(raw, escaped)); }
  void string(std::string_view raw, bool escaped) { add(NodeKind::string, text(raw, escaped)); }
  void number(std::string_view digits, const char* exponent) {
    const bool real = exponent != nullptr || digits.find_first_of(".NI") != std::string_view::npos;
    add(real ? NodeKind::real : NodeKind::integer, digits);
  }
  void literal(char first) {
    if (first == 'n') {
      add(NodeKind::null, {});
    } else {
      entry_.add_scalar(NodeKind::boolean, {}, first == 't');
      check();
    }
  }

 private:
  void add(NodeKind kind, std::string_view value) {
    entry_.add_scalar(kind, value);
    check();
  }
  std::string_view text(std::string_view raw, bool escaped) {
    if (!escaped) return raw;
    scratch_.clear();
    append_unescaped(scratch_, raw);
    return scratch_;
  }
  void check() const {
    if (entry_.memory() <= kMaxEntryMemory) return;
    throw FormatError(display(file_),
                      display(name_) + ": the value takes more than " + human_bytes(kMaxEntryMemory));
  }

  Entry& entry_;
  const std::string& file_;
  std::string_view name_;
  std::array<Entry::Index, kMaxJsonDepth> open_;
  std::size_t depth_ = 0;
  std::string scratch_;
};

}  // namespace

MemberStream::MemberStream(const ByteSource& source)
    : source_(source),
      // A small file takes a small window.
      buffer_(static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, source.size())) + kScanPadding) {
  current_ = end_ = buffer_.data();
}

void MemberStream::fail(const std::string& reason, const char* at) const {
  throw FormatError(display(source_.name()), reason + " (byte " + std::to_string(offset(at)) + ")");
}

void MemberStream::more() {
  check_interrupt();
  if (next_ == source_.size()) fail("the JSON ends too early (truncated?)", end_);
  const auto kept = static_cast<std::size_t>(end_ - current_);
  if (kept > kMaxEntryMemory) fail("one value takes more than " + human_bytes(kMaxEntryMemory), current_);
  begin_offset_ = offset(current_);
  std::memmove(buffer_.data(), current_, kept);
  // A value that did not fit gets twice the room, so that it is scanned a few times only.
  if (kept + kScanPadding > buffer_.size() / 2) buffer_.resize(2 * buffer_.size());
  const auto room = std::min<std::uint64_t>(buffer_.size() - kScanPadding - kept, source_.size() - next_);
  const auto length = static_cast<std::size_t>(room);
  source_.read_at(next_, std::as_writable_bytes(std::span(buffer_.data() + kept, length)));
  next_ += length;
  current_ = buffer_.data();
  end_ = current_ + kept + length;
  std::memset(buffer_.data() + kept + length, 0, kScanPadding);
}

char MemberStream::peek() {
  for (;;) {
    Scan scan{current_, end_, nullptr};
    if (current_ != end_) skip_blanks(scan);
    current_ = scan.at;
    if (current_ != end_) return *current_;
    if (depth() == 0 && next_ == source_.size()) return '\0';
    more();
  }
}

void MemberStream::enter() {
  if (const char first = peek(); first != '{') {
    if (depth() > 0) fail("the value is not an object");
    fail(first == '\0' && current_ == end_ ? "the file is empty" : "the top level is not an object");
  }
  ++current_;
  first_.push_back(true);
}

bool MemberStream::next(std::string& key) {
  char c = peek();
  if (c == '}') {
    ++current_;
    first_.pop_back();
    if (depth() == 0 && (peek() != '\0' || current_ != end_))
      fail("unexpected text after the end of the JSON", current_);
    return false;
  }
  if (!first_.back()) {
    if (c != ',') fail("expected a comma or the end of an object", current_);
    ++current_;
    c = peek();
  }
  first_.back() = false;
  if (c != '"') fail("a member of an object has no name", current_);
  for (;;) {
    Scan scan{current_ + 1, end_, nullptr};
    bool escaped = false;
    const ScanStatus status = scan_string(scan, escaped);
    if (status == ScanStatus::broken) fail(scan.reason, scan.at);
    if (status == ScanStatus::done) {
      const std::string_view raw(current_ + 1, static_cast<std::size_t>(scan.at - current_ - 2));
      key.clear();
      if (escaped) {
        append_unescaped(key, raw);
      } else {
        key.assign(raw);
      }
      current_ = scan.at;
      break;
    }
    more();
  }
  if (peek() != ':') fail("expected a colon after a member name", current_);
  ++current_;
  return true;
}

void append_unescaped(std::string& out, std::string_view raw) {
  for (std::size_t i = 0; i < raw.size();) {
    const std::size_t plain = std::min(raw.find('\\', i), raw.size());
    out += raw.substr(i, plain - i);
    if (plain == raw.size()) return;
    const char kind = raw[plain + 1];
    i = plain + 2;
    if (kind == 'u') {
      std::uint32_t code = hex4(raw.data() + i);
      i += 4;
      const bool pair = code >= 0xD800 && code < 0xDC00 && raw.substr(i).starts_with("\\u");
      if (pair) {
        const std::uint32_t low = hex4(raw.data() + i + 2);
        if (low >= 0xDC00 && low < 0xE000) {
          code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
          i += 6;
        }
      }
      append_utf8(out, code);
    } else {
      constexpr std::string_view kKinds = "bfnrt";
      constexpr std::string_view kValues = "\b\f\n\r\t";
      const std::size_t which = kKinds.find(kind);
      out += which == std::string_view::npos ? kind : kValues[which];
    }
  }
}

std::string_view MemberStream::entry(Entry& entry, std::string_view name) {
  return whole_value([&](Scan& scan, bool) {
    EntryBuilder builder(entry, {scan.at, scan.end}, source_.name(), name);
    return scan_value(scan, builder, kMaxJsonDepth - depth());
  });
}

void build_entry(std::string_view text, Entry& entry, const std::string& file, std::string_view name) {
  EntryBuilder builder(entry, text, file, name);
  // The text was accepted before, and the byte that follows it in the window ends it.
  Scan scan{text.data(), text.data() + text.size() + 1, nullptr};
  scan_value(scan, builder);
}

namespace {

/// `padded`: one value, followed by at least as many bytes as the scanner looks at; the first of these ends a
/// number.
void read_padded(const std::string& padded, Entry& entry, const std::string& file, std::size_t max_depth) {
  const char* const end = padded.data() + padded.size() - kTextPadding;
  Scan scan{padded.data(), end + 1, nullptr};
  const auto fail = [&](const std::string& reason, const char* at) {
    throw FormatError(display(file), reason + " (byte " + std::to_string(at - padded.data()) + ")");
  };
  skip_blanks(scan);
  if (scan.at >= end) fail("it contains no JSON", end);
  EntryBuilder builder(entry, padded, file, file);
  const ScanStatus status = scan_value(scan, builder, max_depth);
  if (status != ScanStatus::done) {
    if (scan.at >= end || status == ScanStatus::incomplete) fail("the JSON ends too early (truncated?)", end);
    fail(scan.reason, scan.at);
  }
  skip_blanks(scan);
  if (scan.at != end) fail("unexpected text after the end of the JSON", scan.at);
  entry.keep();
}

}  // namespace

Entry read_json(std::string_view text, const std::string& file, std::size_t max_depth) {
  if (text.size() > kMaxEntryMemory)
    throw FormatError(display(file), "one value takes more than " + human_bytes(kMaxEntryMemory));
  std::string padded(text);
  padded.append(kTextPadding, '\0');
  Entry entry;
  read_padded(padded, entry, file, max_depth);
  return entry;
}

void read_entry_at(const ByteSource& file, std::uint64_t offset, std::uint64_t size, Entry& entry,
                   std::string_view name) {
  const auto changed = [&] {
    throw FormatError(display(file.name()),
                      display(name) + ": not where it was before; was the file changed in the meantime?");
  };
  if (size > kMaxEntryMemory || offset > file.size() || size > file.size() - offset) changed();
  std::string padded(static_cast<std::size_t>(size) + kTextPadding, '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(padded).first(static_cast<std::size_t>(size))));
  try {
    read_padded(padded, entry, file.name(), kMaxJsonDepth);
  } catch (const FormatError&) {
    changed();
  }
}

}  // namespace msprobe::dump
