// SPDX-License-Identifier: Apache-2.0
// Formats values of a JSON configuration as Python's messages do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace msprobe::series {

using Json = nlohmann::ordered_json;

/// `repr` of the value that Python reads: True, None, 'text', {'a': [1, 2.5]}.
std::string python_repr_of(const Json& value);
/// `str`: a text is itself, without quotes.
std::string python_str_of(const Json& value);
/// "dict", "list", "str", "int", "float", "bool", "NoneType".
std::string_view python_type_of(const Json& value);
/// True if Python treats the value as true.
bool python_truth_of(const Json& value);

}  // namespace msprobe::series
