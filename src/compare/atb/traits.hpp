// SPDX-License-Identifier: Apache-2.0
// What can be otherwise with dumps of ATB, for the sake of the Python tool; the defaults are our way.
#pragma once

namespace msprobe::compare {

struct AtbTraits {
  bool last_of_repeated = false;  // of rows of one name only the last counts, at the place of the first
  bool message_column = true;
};

}  // namespace msprobe::compare
