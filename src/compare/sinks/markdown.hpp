// SPDX-License-Identifier: Apache-2.0
// The verdict as Markdown, short enough for a comment on a pull request.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {

/// For each task, gives its counts and a table of the rows that did not pass, in order of execution. The text
/// stays below 60,000 bytes (a comment takes 65,536 characters); rows that are left out are counted. Creates
/// the folder of `path`; "-" is standard output.
std::unique_ptr<Sink> markdown_sink(const std::string& path, Existing existing);

/// The text as a cell of a table: no character in it has a meaning to Markdown or HTML.
std::string markdown_cell(std::string_view text);

}  // namespace msprobe::compare
