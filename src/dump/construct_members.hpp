// SPDX-License-Identifier: Apache-2.0
// The members of construct.json one by one, for those to whom their order tells something.
#pragma once

#include <functional>
#include <string_view>

#include "dump/entry.hpp"
#include "support/byte_source.hpp"

namespace msprobe::dump {

/// Takes a member of the file, in its order; names may come twice. The value is only valid during the call.
using ConstructVisitor = std::function<void(std::string_view name, const Entry& value)>;
/// Throws FormatError for broken JSON.
void read_construct_members(const ByteSource& file, const ConstructVisitor& visit);

/// The parent that such a value tells: itself, or the first element of a list; empty if that is no text.
std::string_view construct_parent(const Entry& value);

}  // namespace msprobe::dump
