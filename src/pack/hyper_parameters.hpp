// SPDX-License-Identifier: Apache-2.0
// Hyper-parameters out of launch scripts and YAML files, as one flat list of names and values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// Nested names joined with dots; FormatError naming `file` if that makes too much text. A list of numbers,
/// texts, Booleans and lists is one value; any other goes on with the numbers of its elements. Null and empty
/// maps vanish.
FlatMap flatten(const PackValue& value, const std::string& file);

/// Can a file of this name be read: `.sh`, `.yaml`, `.yml`?
bool is_parameter_file(std::string_view path);

/// The hyper-parameters of such a file. Adds to `warnings` the parts of a script that were not understood.
/// IoError or FormatError naming the file.
FlatMap read_parameter_file(const std::string& path, std::vector<std::string>& warnings);

}  // namespace msprobe::pack
