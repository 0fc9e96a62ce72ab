// SPDX-License-Identifier: Apache-2.0
// Rates the names in a pickle by the harm they could do if Python loaded the pickle.
#pragma once

#include <string_view>

namespace msprobe::formats {

enum class Rating {
  ok,         // makes tensors and containers, nothing else
  unknown,    // could be anything
  dangerous,  // runs code, reads or writes files, talks to the network
};

std::string_view rating_name(Rating rating);

/// The rating of `module.name`. The function compares the names with tables; it imports nothing.
Rating rate_global(std::string_view module, std::string_view name);

/// Are objects of this class harmless only if the pickle makes them without calling the class?
bool is_data_class(std::string_view module, std::string_view name);

/// Is the module alone enough to rate the name as dangerous, unless a list of harmless names has it? In
/// arbitrary bytes a name like `load` often occurs by chance.
bool acts_by_its_module(std::string_view module, std::string_view name);

}  // namespace msprobe::formats
