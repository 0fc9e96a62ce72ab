// SPDX-License-Identifier: Apache-2.0
// Reads the values of a recorded call: its arguments, its results, and the description of each tensor among
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"

namespace msprobe::dump {

enum class ArgumentKind : std::uint8_t {
  none,
  plain,    // a boolean, a number, a text
  list,     // tuples too
  mapping,  // an object without a type
  tensor,
  typed,  // another object with a type
};

struct Argument {
  ArgumentKind kind = ArgumentKind::none;
  std::string_view type;  // as recorded: `torch.Tensor`, `int`; empty without a type
  Entry::Index content =
      Entry::kNone;  // of `typed` its value, kNone if none was recorded; else the node itself
};
Argument read_argument(const Entry& entry, Entry::Index node);

/// The texts are the entry's.
struct TensorRecord {
  std::string_view type;
  std::string_view dtype;
  std::optional<std::vector<std::int64_t>> shape;  // nothing if it is not a list of sizes
  bool requires_grad = false;
  std::string_view file;  // in the folder of the dump's tensors; empty: its elements were not dumped
};
TensorRecord read_tensor(const Entry& entry, Entry::Index node);

/// The tensors at and below the node, in order.
std::vector<Entry::Index> tensors_in(const Entry& entry, Entry::Index node);

}  // namespace msprobe::dump
