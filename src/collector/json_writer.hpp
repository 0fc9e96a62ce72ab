// SPDX-License-Identifier: Apache-2.0
// Puts JSON text together piece by piece, as Python's json.dump(indent=1) lays it out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::collector {

void append_integer(std::string& out, std::int64_t value);
void append_unsigned(std::string& out, std::uint64_t value);
/// With NaN, Infinity and -Infinity as Python's json module writes them.
void append_real(std::string& out, double value);

/// JSON text from elsewhere, read and written anew for a place at that level. FormatError.
void append_foreign_json(std::string& out, std::string_view json, int level);
/// The same, of an object: its members alone, each with a comma and a new line before it.
void append_foreign_members(std::string& out, std::string_view json, int level);

/// A value in the making. Below kMaxDepth levels there are only nulls.
class JsonWriter {
 public:
  static constexpr std::size_t kMaxDepth = 396;  // a leaf may be an object with a list in it

  /// The value stands at that level of its file: what is in it is indented by one more.
  explicit JsonWriter(int level) : level_(level) {}

  /// Starts the next item of the container that is open, or the value itself; its text must follow. False
  /// where no item can stand: the one value is complete, or below the deepest level.
  bool item(std::string_view key);
  /// Where an item may begin, to go back to if it comes to nothing.
  struct Mark {
    std::size_t size = 0;
    std::uint64_t count = 0;
    bool begun = false;
  };
  Mark mark() const { return {text.size(), frames_.empty() ? 0 : frames_.back().count, begun_}; }
  void go_back(const Mark& mark) noexcept;

  void open(std::string_view key, bool object);
  bool close();

  /// Is the one value there, with nothing left open?
  bool complete() const { return begun_ && frames_.empty() && hidden_ == 0; }
  std::size_t depth() const { return frames_.size() + hidden_; }
  /// Of the container that is open.
  std::uint64_t items() const { return frames_.empty() ? 0 : frames_.back().count; }
  bool in_object() const { return !frames_.empty() && frames_.back().object; }
  /// Of an item that begins now, if it is the member of an object that is open.
  int level() const { return level_ + static_cast<int>(frames_.size()); }
  /// Keys and indices that lead to the item begun last: "0.key".
  std::string_view path() const { return path_; }

  std::string text;

 private:
  struct Frame {
    bool object = false;
    std::uint64_t count = 0;
    std::size_t path_size = 0;
  };
  int level_;
  bool begun_ = false;
  std::size_t hidden_ = 0;  // containers that are too deep
  std::vector<Frame> frames_;
  std::string path_;
};

}  // namespace msprobe::collector
