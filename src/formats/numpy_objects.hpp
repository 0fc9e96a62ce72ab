// SPDX-License-Identifier: Apache-2.0
// NumPy's types have harmless names, but a pickle can do harm with them: if it declares elements to be
// pointers and chooses the pointers, it runs code without naming any.
#pragma once

#include <string>

#include "formats/pickle.hpp"
#include "formats/pickle_rating.hpp"

namespace msprobe::formats {

struct NumpyFinding {
  Rating rating = Rating::ok;
  std::string what;
};

/// The worst use of NumPy's types in the pickle: unknown for arrays of objects as NumPy writes them;
/// dangerous for a type whose state does not fit its elements, for memory that is viewed as an array, and for
/// arrays that are changed item by item.
NumpyFinding rate_numpy_objects(const Pickle& pickle);

}  // namespace msprobe::formats
