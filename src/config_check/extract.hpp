// SPDX-License-Identifier: Apache-2.0
// Writes the members of a pack as files, to the place where scripts written for the Python tool expect them.
#pragma once

#include <string>

#include "pack/pack_reader.hpp"

namespace msprobe::config_check {

/// Makes `folder` hold the members of the pack. Members from an earlier comparison are removed first; other
/// files stay. IoError instead of writing through a symbolic link, whether it is `folder` itself or in it.
/// (IoError).
void extract(const pack::Pack& pack, const std::string& folder);

}  // namespace msprobe::config_check
