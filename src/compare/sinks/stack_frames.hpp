// SPDX-License-Identifier: Apache-2.0
// Which frames of a stack are the user's and which belong to a library.
#pragma once

#include <string_view>

namespace msprobe::compare {

/// Is the file of `File PATH, line …` outside of installed packages, Python itself and the frameworks?
bool is_own_frame(std::string_view frame);

}  // namespace msprobe::compare
