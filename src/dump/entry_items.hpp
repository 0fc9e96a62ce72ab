// SPDX-License-Identifier: Apache-2.0
// The items of one entry, for code that needs its recorded values as well as the items made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "dump/side.hpp"

namespace msprobe::dump {

struct EntryItems {
  Side side;
  std::vector<Entry::Index> places;  // by item: the place of its value in the entry's tree
};

/// No items if its name says neither forward, backward nor parameters_grad. FormatError, naming `file`, if
/// the names of the items take far more room than an entry of `size` bytes may give.
EntryItems items_of(std::string_view name, const Entry& entry, std::uint64_t size, const std::string& file);

}  // namespace msprobe::dump
