// SPDX-License-Identifier: Apache-2.0
// The HTML report on all tasks (html_page.hpp), made of their rows as they come.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"

namespace msprobe::compare {

/// `file` lies in `directory`, which is made if it is not there; without one `file` is a path, or "-" for
/// standard output.
std::unique_ptr<Sink> html_sink(const std::string& directory, const std::string& file);

}  // namespace msprobe::compare
