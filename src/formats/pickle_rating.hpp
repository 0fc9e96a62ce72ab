// SPDX-License-Identifier: Apache-2.0
// What the names in a pickle mean for who would load it with Python.
#pragma once

#include <string_view>

namespace msprobe::formats {

enum class Rating {
  ok,         // makes tensors and containers, nothing else
  unknown,    // could be anything
  dangerous,  // runs code, reads or writes files, talks to the network
};

std::string_view rating_name(Rating rating);

/// The rating of `module.name`. Nothing is looked up: the names themselves are compared with tables.
Rating rate_global(std::string_view module, std::string_view name);

/// Is it a class whose objects are ok only where a pickle makes them without calling it?
bool is_data_class(std::string_view module, std::string_view name);

/// Does the module alone tell that it is dangerous, unless it is on a list of harmless names? Among bytes
/// that may be anything, a name like `load` says little.
bool acts_by_its_module(std::string_view module, std::string_view name);

}  // namespace msprobe::formats
