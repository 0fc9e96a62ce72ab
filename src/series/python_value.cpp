// SPDX-License-Identifier: Apache-2.0
#include "series/python_value.hpp"

#include <nlohmann/json.hpp>

#include "support/text.hpp"

namespace msprobe::series {

std::string python_repr_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "None";
    case Json::value_t::boolean:
      return value.get<bool>() ? "True" : "False";
    case Json::value_t::number_float:
      return python_repr(value.get<double>());
    case Json::value_t::string:
      return python_repr(std::string_view(value.get_ref<const std::string&>()));
    case Json::value_t::array: {
      std::string text = "[";
      for (const Json& one : value) text += (text.size() > 1 ? ", " : "") + python_repr_of(one);
      return text + "]";
    }
    case Json::value_t::object: {
      std::string text = "{";
      for (const auto& [key, one] : value.items()) {
        text +=
            (text.size() > 1 ? ", " : "") + python_repr(std::string_view(key)) + ": " + python_repr_of(one);
      }
      return text + "}";
    }
    default:
      return value.dump();
  }
}

std::string python_str_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : python_repr_of(value);
}

std::string_view python_type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "NoneType";
    case Json::value_t::boolean:
      return "bool";
    case Json::value_t::number_float:
      return "float";
    case Json::value_t::string:
      return "str";
    case Json::value_t::array:
      return "list";
    case Json::value_t::object:
      return "dict";
    default:
      return "int";
  }
}

bool python_truth_of(const Json& value) {
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.is_null() && !value.empty();
}

}  // namespace msprobe::series
