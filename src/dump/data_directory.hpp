// SPDX-License-Identifier: Apache-2.0
// dump.json with what it tells of its tensors' folder.
#pragma once

#include <optional>
#include <string>

#include "dump/dump_json.hpp"

namespace msprobe::dump {

struct DirectedHeader : Header {
  std::optional<std::string> data_directory;  // nothing if `dump_data_dir` is no text
};

/// As read_values() does it.
DirectedHeader read_directed_values(const ByteSource& file, const ValueVisitor& visit);

}  // namespace msprobe::dump
