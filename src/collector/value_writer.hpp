// SPDX-License-Identifier: Apache-2.0
// A value of a dump in the making, as Python's json.dump(indent=1) lays it out: with the place of each item
// in it, and with an end to how deep it goes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/json_writer.hpp"

namespace msprobe::collector {

/// JSON text from elsewhere, read and written anew for a place at that level. FormatError.
void append_foreign_json(std::string& out, std::string_view json, int level);
/// The same, of an object: its members alone, each with a comma and a new line before it.
void append_foreign_members(std::string& out, std::string_view json, int level);

/// Below kMaxDepth levels there are only nulls.
class ValueWriter {
 public:
  static constexpr std::size_t kMaxDepth = 396;  // a leaf may be an object with a list in it

  /// The value stands at that level of its file: what is in it is indented by one more.
  explicit ValueWriter(int level) : json_({.indent = 1}, level) {}

  /// Starts the next item of the container that is open, or the value itself; its text must follow in text().
  /// False where no item can stand: the one value is complete, or below the deepest level.
  bool item(std::string_view key);
  /// Where an item may begin, to go back to if it comes to nothing.
  struct Mark {
    JsonWriter::Mark json;
    bool begun = false;
  };
  Mark mark() const { return {json_.mark(), begun_}; }
  void go_back(const Mark& mark) noexcept;

  void open(std::string_view key, bool object);
  bool close();

  /// Is the one value there, with nothing left open?
  bool complete() const { return begun_ && json_.depth() == 0 && hidden_ == 0; }
  std::size_t depth() const { return json_.depth() + hidden_; }
  /// Of the container that is open.
  std::uint64_t items() const { return json_.items(); }
  bool in_object() const { return json_.in_object(); }
  /// Of an item that begins now, if it is the member of an object that is open.
  int level() const { return json_.level(); }
  /// Keys and indices that lead to the item begun last: "0.key".
  std::string_view path() const { return path_; }

  std::string& text() { return json_.text(); }

 private:
  JsonWriter json_;
  bool begun_ = false;
  std::size_t hidden_ = 0;               // containers that are too deep
  std::vector<std::size_t> path_sizes_;  // of the paths to the containers that are open
  std::string path_;
};

}  // namespace msprobe::collector
