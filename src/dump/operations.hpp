// SPDX-License-Identifier: Apache-2.0
// The rows of data/operations.yaml, which explains their keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::dump {

/// Operations of one kind compute the same sort of thing.
enum class OperationKind : std::uint8_t {
  unknown,
  activation,
  arithmetic,
  attention,
  communication,
  convert,
  create,
  decision,
  index,
  loss,
  move,
  norm,
  optimizer,
  pointwise,
  product,
  question,
  random,
  recurrent,
  reduction,
  softmax,
  solve,
};

/// The way in which an operation propagates errors.
enum class Nature : std::uint8_t {
  ordinary,
  random,       // draws numbers
  discrete,     // a decision: may flip by noise
  division,     // amplifies what is small
  sum,          // of its inputs: may cancel
  total,        // of elements: may cancel
  mean,         // of elements: may cancel
  exponential,  // absolute errors become relative ones
  periodic,     // likewise, and its extremes show none of them
  normalising,  // takes the mean and the size away
  scaling,      // takes the size away
  kinked,       // its slope jumps
};

/// Positions of arguments, as bits.
using Positions = std::uint32_t;

struct KnownOperation {
  /// The words of `is` in the file.
  enum Trait : std::uint16_t {
    kCommutative = 1,
    kInPlaceGradient = 2,
    kLandmark = 4,
    kLeftOut = 8,
    kMoves = 16,
    kOverwrites = 32,
    kPortable = 64,
    kSize = 128,
    kView = 256,
  };
  struct Signature {
    std::string_view prefix;  // of entries; empty for all that the operation has
    std::string_view arguments;
  };

  std::string_view name;  // in lower case, without the marks of operators and of work in place
  std::string_view row;   // the name of its row, which several names may share
  OperationKind kind = OperationKind::unknown;
  Nature nature = Nature::ordinary;
  std::uint16_t traits = 0;
  Positions parameters = 0;
  Positions running_statistics = 0;
  std::string_view prefixes;  // separated by spaces; empty: any prefix
  std::span<const Signature> signatures;
  std::string_view replay;  // the function that computes it; empty where none does
  std::string_view rules;   // as `rules` in the file, apart by spaces

  bool is(Trait trait) const { return (traits & trait) != 0; }
};

/// Finds the row for the last part of an entry's name (`add`, `__iadd__`, `LayerNorm`); null if there is
/// none.
const KnownOperation* find_operation(std::string_view name);

/// Reads a user's rows: those of data/operations.yaml, but with one signature for all prefixes. They replace
/// rows of the same names until the program ends, so call it before any thread exists. IoError or FormatError
/// if the file is wrong.
void add_operations(const std::string& path);

/// The arguments of `Functional.layer_norm` in order, `input normalized_shape weight=None bias=None`; what
/// follows `*` is given by name alone, and `a|b` is either, by the overload. Empty if they are not known.
std::string_view arguments_of(std::string_view operation_with_prefix);
std::string_view arguments_of(const KnownOperation& operation, std::string_view prefix);
/// The same where entries with this prefix are not called so, but something like it is.
std::string_view arguments_like(const KnownOperation& operation, std::string_view prefix);

/// An operation that a list of rules has: as the list spells it, and what it says of it.
struct Listed {
  std::string name;
  std::vector<std::string_view> parts;
  const KnownOperation* operation = nullptr;
};
/// The operations in whose `rules` the list stands, of the built-in rows alone.
std::vector<Listed> listed_operations(std::string_view list);
/// Is the operation in the list, in this spelling?
bool is_listed(std::string_view list, std::string_view operation);

/// The position of an argument in a signature; nothing if it has none.
std::optional<std::size_t> position_of(std::string_view signature, std::string_view argument);

/// Has the name the mark of a call that changes its first input: `add_`, `__iadd__`?
bool has_in_place_mark(std::string_view name);

}  // namespace msprobe::dump
