// SPDX-License-Identifier: Apache-2.0
// The command pk: the text dumps of the first releases, which called themselves `.pkl`.
#pragma once

#include <string>

namespace msprobe::parse {

/// Statistics and stacks of the entries of `path` (one JSON list a line) whose name begins with `prefix`.
/// FormatError for a line that is no JSON.
std::string show_old_dump(const std::string& path, const std::string& prefix);

}  // namespace msprobe::parse
