// SPDX-License-Identifier: Apache-2.0
// The command pk: the text dumps of the first releases, which called themselves `.pkl`.
#pragma once

#include <string>

namespace msprobe::parse {

/// The statistics and stacks of the entries in `path` (one JSON list per line) whose names begin with
/// `prefix`. FormatError for a line that is not JSON.
std::string show_old_dump(const std::string& path, const std::string& prefix);

}  // namespace msprobe::parse
