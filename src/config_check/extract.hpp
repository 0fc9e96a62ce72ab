// SPDX-License-Identifier: Apache-2.0
// The members of a pack as files, where scripts written for the Python tool look for them.
#pragma once

#include <string>

#include "pack/pack_reader.hpp"

namespace msprobe::config_check {

/// Makes `folder` hold the members of the pack: those of an earlier comparison are removed before, other
/// files are left alone. Nothing is written through a symbolic link that stands in `folder` or is it
/// (IoError).
void extract(const pack::Pack& pack, const std::string& folder);

}  // namespace msprobe::config_check
