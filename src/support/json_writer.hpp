// SPDX-License-Identifier: Apache-2.0
// Writes JSON text. The default is the form of Python's json module: only ASCII, bare NaN and Infinity.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace msprobe {

/// The form of characters that are not ASCII.
enum class JsonText : std::uint8_t {
  ascii,  // escaped; bytes that are not UTF-8 become the surrogates that Python reads
  utf8,   // unchanged; bytes that are not UTF-8 become U+FFFD, so that every reader accepts the file
};

/// Appends the text in quotes.
void append_json_string(std::string& out, std::string_view text, JsonText style = JsonText::ascii);

/// Appends a list of texts on one line; bytes that are not UTF-8 become U+FFFD.
void append_json_list(std::string& out, const std::vector<std::string>& texts);

/// Appends the number in the form of `repr`, or NaN, Infinity, -Infinity.
void append_json_real(std::string& out, double value);

template <std::integral T>
void append_json_integer(std::string& out, T value) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr);
}

/// Ends a line and indents the next one; does nothing if `indent` is 0.
void append_json_line(std::string& out, int level, int indent);

struct JsonStyle {
  int indent = 0;        // columns a level; 0: all on one line
  bool compact = false;  // no blanks after commas and colons
  JsonText text = JsonText::ascii;
};

/// Builds a value piece by piece; the code that opens a container must close it.
class JsonWriter {
 public:
  /// Lines are indented as those of a value at `level` of its file.
  explicit JsonWriter(const JsonStyle& style = {}, int level = 0) : style_(style), level_(level) {}

  void open_object() { open(true); }
  void open_list() { open(false); }
  void close();
  /// The same as a member of an object.
  void open_object(std::string_view name) {
    key(name);
    open(true);
  }
  void open_list(std::string_view name) {
    key(name);
    open(false);
  }

  /// Starts the next member of an object or the next element of a list; its value must follow.
  void key(std::string_view name);
  void element();

  /// Writes a value: text, a number, a boolean, a list of such, or an object made of pairs. A value without
  /// key() or element() before it is the next element. Other kinds of values are appended to text() after one
  /// of these.
  template <typename T>
  void value(const T& what);
  void null() { place() += "null"; }
  void raw(std::string_view json) { place() += json; }

  template <typename T>
  void member(std::string_view name, const T& what) {
    key(name);
    value(what);
  }
  /// Writes a list of these items, of any types.
  template <typename... Items>
  void list(const Items&... items) {
    open_list();
    (value(items), ...);
    close();
  }

  /// A position before an item, to return to if the item is dropped.
  struct Mark {
    std::size_t size = 0;
    std::uint64_t count = 0;
  };
  Mark mark() const { return {text_.size(), items()}; }
  void go_back(const Mark& mark) noexcept;

  std::size_t depth() const { return frames_.size(); }
  /// The number of items in the open container.
  std::uint64_t items() const { return frames_.empty() ? 0 : frames_.back().count; }
  bool in_object() const { return !frames_.empty() && frames_.back().object; }
  int indent() const { return style_.indent; }
  /// The level of an item in the open container.
  int level() const { return level_ + static_cast<int>(frames_.size()); }

  std::string& text() {
    started_ = false;
    return text_;
  }
  std::string take() { return std::move(text_); }

 private:
  struct OpenContainer {
    bool object = false;
    std::uint64_t count = 0;
  };
  void open(bool object);
  /// The text, at a place where a value may begin.
  std::string& place();

  JsonStyle style_;
  int level_;
  bool started_ = false;  // by key() or element()
  std::vector<OpenContainer> frames_;
  std::string text_;
};

template <typename T>
void JsonWriter::value(const T& what) {
  if constexpr (std::is_same_v<T, bool>) {
    place() += what ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    append_json_integer(place(), what);
  } else if constexpr (std::floating_point<T>) {
    append_json_real(place(), what);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    append_json_string(place(), what, style_.text);
  } else if constexpr (requires { std::ranges::begin(what)->second; }) {
    open_object();
    for (const auto& [name, each] : what) member(name, each);
    close();
  } else {
    open_list();
    for (const auto& each : what) value(each);
    close();
  }
}

}  // namespace msprobe
