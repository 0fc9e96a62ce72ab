// SPDX-License-Identifier: Apache-2.0
// Builds a value of a dump in the layout of Python's json.dump(indent=1). It knows the place of each item,
// and limits the depth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "support/json_writer.hpp"

namespace msprobe::collector {

/// Appends JSON text from elsewhere, reformatted for that level. Throws FormatError.
void append_foreign_json(std::string& out, std::string_view json, int level);
/// The same for an object: only its members, each with a comma and a new line before it.
void append_foreign_members(std::string& out, std::string_view json, int level);

/// Writes nulls below kMaxDepth levels.
class ValueWriter {
 public:
  static constexpr std::size_t kMaxDepth = 396;  // a leaf may be an object with a list in it

  /// `level` is that of the value in its file; its contents are indented by one more.
  explicit ValueWriter(int level) : json_({.indent = 1}, level) {}

  /// Starts the next item of the open container, or the value itself; its text must follow in text(). Returns
  /// false if no item can be here: the value is complete, or the place is too deep.
  bool item(std::string_view key);
  /// A position before an item, to return to if the item is dropped.
  struct ItemMark {
    JsonWriter::Mark json;
    bool begun = false;
  };
  ItemMark mark() const { return {json_.mark(), begun_}; }
  void go_back(const ItemMark& mark) noexcept;

  void open(std::string_view key, bool object);
  bool close();

  /// True if the value is complete and no container is open.
  bool complete() const { return begun_ && json_.depth() == 0 && hidden_ == 0; }
  std::size_t depth() const { return json_.depth() + hidden_; }
  bool in_object() const { return json_.in_object(); }
  /// The level of an item that begins now, if it is a member of the open object.
  int level() const { return json_.level(); }
  /// The keys and indices that lead to the item begun last: "0.key".
  std::string_view path() const { return path_; }

  std::string& text() { return json_.text(); }

 private:
  JsonWriter json_;
  bool begun_ = false;
  std::size_t hidden_ = 0;               // containers that are too deep
  std::vector<std::size_t> path_sizes_;  // of the paths to the open containers
  std::string path_;
};

}  // namespace msprobe::collector
