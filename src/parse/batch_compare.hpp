// SPDX-License-Identifier: Apache-2.0
// The command vc over two folders of converted tensors.
#pragma once

#include <string>

namespace msprobe::parse {

/// Are all files below the folder (to the depth that the Python tool looks) tensor files by their names?
bool holds_only_tensors(const std::string& folder);

/// Compares `{operator}/{timestamp}/{file}` of both folders one by one and writes
/// `{output}/batch_compare_{time}.csv`; returns its name. The operators must have the same names; timestamps
/// and files are paired in sorted order. FormatError for any mismatch of structure, shape or type; no file is
/// left then.
std::string batch_compare(const std::string& mine, const std::string& golden, const std::string& output);

}  // namespace msprobe::parse
