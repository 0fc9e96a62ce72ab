// SPDX-License-Identifier: Apache-2.0
// construct.json: the module that encloses an entry (docs/formats.md, "construct.json").
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "support/byte_source.hpp"
#include "support/text_pool.hpp"

namespace msprobe::dump {

class ConstructTable {
 public:
  /// The enclosing entry; empty if the entry has no parent or is not known. Valid as long as the table.
  std::string_view parent(std::string_view entry) const;
  /// The modules around an entry, the innermost first. At most 64, which also ends a chain that runs in a
  /// circle: no model nests deeper.
  std::vector<std::string_view> around(std::string_view entry) const;
  /// From the outermost module to the entry itself. A chain that runs in a circle ends where it would repeat.
  std::vector<std::string> chain(std::string_view entry) const;
  std::size_t size() const { return known_; }
  /// Whether the file has the name, as an entry or as a parent.
  bool knows(std::string_view name) const { return names_.find(name) != 0; }
  /// The micro step of an entry, from 0, where the file numbers them.
  std::uint32_t micro_step(std::string_view entry) const;
  bool numbers_micro_steps() const { return !micro_steps_.empty(); }

  void add(std::string_view entry, std::string_view parent);
  /// Notes the micro step of an entry, if it is not the first.
  void add_micro_step(std::string_view entry, std::uint32_t step);

 private:
  TextTable names_;
  std::vector<std::uint32_t> parents_;  // of the names, by number; 0 for none
  std::size_t known_ = 0;
  std::vector<std::uint32_t> micro_steps_;  // of the names, by number; empty: none beyond the first
};

/// Whether a parent is one of the Python tool's names for code that takes the gradients of all parameters.
inline bool is_of_optimizer(std::string_view parent) {
  return parent == "optimizer" || parent == "clip_grad";
}

/// The construct.json next to a dump.json, read when it is first asked for; any thread may ask.
class ConstructBeside {
 public:
  explicit ConstructBeside(const std::string& dump_json);
  /// Holds a table that was read already.
  explicit ConstructBeside(ConstructTable&& table);
  /// The table; empty if the file does not exist or cannot be read.
  const ConstructTable& table() const;
  /// The reason why the file cannot be read; empty if it can be read, or does not exist.
  const std::string& problem() const;

 private:
  void read() const;

  std::string path_;
  mutable std::once_flag once_;
  mutable ConstructTable table_;
  mutable std::string problem_;
};

/// Takes a member of the file, in its order; names may come twice. The value is only valid during the call.
using ConstructVisitor = std::function<void(std::string_view name, const Entry& value)>;
/// Throws FormatError for broken JSON.
void read_construct_members(const ByteSource& file, const ConstructVisitor& visit);

/// The parent in such a value: the value itself, or the first element of a list; empty if that is not a text.
std::string_view construct_parent(const Entry& value);
/// The second element of such a list; 0 if the list has no second element, or it is not a small number.
std::uint32_t construct_micro_step(const Entry& value);

/// Reads the file. If a value is `[parent, micro step]`, its first element is the parent; values of another
/// shape count as no parent. Throws FormatError for broken JSON.
ConstructTable read_construct_json(const ByteSource& file);

}  // namespace msprobe::dump
