// SPDX-License-Identifier: Apache-2.0
// Translates names of entries from one framework or run to the other (docs/pairing.md, "-am", "-cm").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pairing/mapping_file.hpp"
#include "pairing/matching.hpp"

namespace msprobe::pairing {

/// `Functional.add` of `Functional.add.0.forward.input.0`.
std::string_view operation_of(std::string_view name);

/// The PyTorch name of a MindSpore operation: `Mint.add` is `Torch.add`; the table has all others. An unknown
/// name stays as it is.
std::string to_pytorch(std::string_view name, const NameMapping& table);

/// `Cell.` at the front becomes `Module.`
std::string cell_to_module(std::string_view name);

/// Translates names of modules by a cell mapping: the whole path, or else every key that is a part of it, in
/// the order of the file.
class CellNames {
 public:
  /// `file` is for messages.
  CellNames(const NameMapping& mapping, std::string file);
  /// FormatError if the values of the mapping make a name grow without bound.
  std::string operator()(std::string_view name);
  /// Whether the mapping has changed a name so far.
  bool applied() const { return applied_; }

 private:
  struct CellPlace {
    std::size_t entry = 0;
    std::size_t at = 0;
  };
  /// The first entry of the file, from `from` on, whose key is in the text.
  CellPlace first_in(std::string_view text, std::size_t from) const;
  std::string translate(std::string_view path);

  const NameMapping& mapping_;
  std::string file_;
  bool applied_ = false;
  std::vector<std::uint32_t> sorted_;  // entries by their keys
  std::unordered_map<std::string, std::string> known_;
};

/// The entry's name without its call number: `Torch.a.forward` of `Torch.a.3.forward`, `Module.a.L.forward`
/// of `Module.a.L.forward.3`.
std::string without_call(std::string_view name);

}  // namespace msprobe::pairing
