// SPDX-License-Identifier: Apache-2.0
// Values of an optimizer's settings, as Python writes them.
#pragma once

#include <string>

namespace msprobe::diagnosis {

/// A setting as Python writes it, without the last digits of a number that was computed.
std::string shown_setting(const std::string& setting);
bool is_same_setting(const std::string& ours, const std::string& theirs);

}  // namespace msprobe::diagnosis
