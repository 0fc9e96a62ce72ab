// SPDX-License-Identifier: Apache-2.0
// Values of a JSON configuration as messages of Python name them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace msprobe::series {

using Json = nlohmann::ordered_json;

/// `repr` of what Python reads: True, None, 'text', {'a': [1, 2.5]}.
std::string python_repr_of(const Json& value);
/// `str`: a text stands for itself.
std::string python_str_of(const Json& value);
/// "dict", "list", "str", "int", "float", "bool", "NoneType".
std::string_view python_type_of(const Json& value);
/// Whether Python takes it for true.
bool python_truth_of(const Json& value);

}  // namespace msprobe::series
