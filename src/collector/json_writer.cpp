// SPDX-License-Identifier: Apache-2.0
#include "collector/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "dump/member_stream.hpp"
#include "dump/python_json.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

template <typename T>
void append_digits(std::string& out, T value) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

/// `level`: where it will stand; no reader takes a value that is deeper than kMaxDepth in all.
dump::Entry parse_foreign(std::string_view json, int level) {
  constexpr int kMost = static_cast<int>(kMaxJsonDepth);
  dump::Entry entry;
  try {
    dump::read_json(json, entry, "a value", static_cast<std::size_t>(std::max(kMost - level, 1)));
  } catch (const FormatError&) {
    throw FormatError("a value is not JSON");
  }
  return entry;
}

}  // namespace

void append_integer(std::string& out, std::int64_t value) {
  append_digits(out, value);
}

void append_unsigned(std::string& out, std::uint64_t value) {
  append_digits(out, value);
}

void append_real(std::string& out, double value) {
  dump::append_json_real(out, value);
}

void append_foreign_json(std::string& out, std::string_view json, int level) {
  const dump::Entry entry = parse_foreign(json, level);
  dump::append_json(out, entry, 0, level, 1);
}

void append_foreign_members(std::string& out, std::string_view json, int level) {
  const dump::Entry entry = parse_foreign(json, level);
  if (!entry.is(0, dump::NodeKind::object)) throw FormatError("a value is not a JSON object");
  entry.children(0, [&](dump::Entry::Index child) {
    out += ',';
    dump::append_json_line(out, level, 1);
    dump::append_json_string(out, entry.key(child));
    out += ": ";
    dump::append_json(out, entry, child, level, 1);
  });
}

bool JsonWriter::item(std::string_view key) {
  if (hidden_ > 0) return false;
  if (frames_.empty()) {
    if (begun_) return false;
    begun_ = true;
    return true;
  }
  Frame& frame = frames_.back();
  if (frame.count > 0) text += ',';
  dump::append_json_line(text, level(), 1);
  path_.resize(frame.path_size);
  if (!path_.empty()) path_ += '.';
  if (frame.object) {
    dump::append_json_string(text, key);
    text += ": ";
    path_ += key;
  } else {
    append_unsigned(path_, frame.count);
  }
  ++frame.count;
  return true;
}

void JsonWriter::go_back(const Mark& mark) noexcept {
  text.resize(mark.size);
  if (!frames_.empty()) frames_.back().count = mark.count;
  begun_ = mark.begun;
}

void JsonWriter::open(std::string_view key, bool object) {
  if (!item(key)) {
    // The container that does not fit is an item, too: its close() must find it.
    ++hidden_;
    return;
  }
  if (frames_.size() == kMaxDepth) {
    text += "null";
    ++hidden_;
    return;
  }
  text += object ? '{' : '[';
  frames_.push_back({object, 0, path_.size()});
}

bool JsonWriter::close() {
  if (hidden_ > 0) {
    --hidden_;
    return true;
  }
  if (frames_.empty()) return false;
  const Frame frame = frames_.back();
  frames_.pop_back();
  if (frame.count > 0) dump::append_json_line(text, level(), 1);
  text += frame.object ? '}' : ']';
  path_.resize(frame.path_size);
  return true;
}

}  // namespace msprobe::collector
