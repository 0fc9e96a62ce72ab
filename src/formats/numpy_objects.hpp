// SPDX-License-Identifier: Apache-2.0
// NumPy's own types are harmless names, but not whatever a pickle makes of them: elements that are pointers,
// where the pickle chooses the pointers, run code without a name that says so.
#pragma once

#include <string>

#include "formats/pickle.hpp"
#include "formats/pickle_rating.hpp"

namespace msprobe::formats {

struct NumpyFinding {
  Rating rating = Rating::ok;
  std::string what;
};

/// The worst of what the pickle makes of NumPy's types: unknown for arrays of objects as NumPy writes them,
/// dangerous for a type whose state is not that of its elements, for memory that is looked at as an array,
/// and for arrays that are changed item by item.
NumpyFinding rate_numpy_objects(const Pickle& pickle);

}  // namespace msprobe::formats
