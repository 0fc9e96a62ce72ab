// SPDX-License-Identifier: Apache-2.0
// construct.json: which module encloses an entry (spec/dump-format.md 4.2).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::dump {

class ConstructTable {
 public:
  /// The enclosing entry; empty if there is none or the entry is not known. Valid as long as the table.
  std::string_view parent(std::string_view entry) const;
  /// From the outermost module to the entry itself. A chain that runs in a circle ends where it would repeat.
  std::vector<std::string> chain(std::string_view entry) const;
  std::size_t size() const { return parents_.size(); }

  void add(std::string entry, std::string parent) {
    parents_.insert_or_assign(std::move(entry), std::move(parent));
  }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::string, Hash, std::equal_to<>> parents_;
};

/// A parent given as `[parent, micro batch]` counts as its first element; values of another shape as no
/// parent. Throws FormatError for broken JSON.
ConstructTable read_construct_json(const ByteSource& file);

}  // namespace msprobe::dump
