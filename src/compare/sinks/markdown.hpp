// SPDX-License-Identifier: Apache-2.0
// The verdict as Markdown, short enough for a comment on a pull request.
#pragma once

#include <memory>
#include <string>

#include "compare/imports.hpp"
#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {

/// For each task its counts and a table of the rows that are not a pass, in order of execution. The text
/// stays below 60,000 bytes (a comment takes 65,536 characters); what is left out is counted. The folder of
/// `path`, which is "-" for standard output, is made if it is not there.
std::unique_ptr<Sink> markdown_sink(const std::string& path, Existing existing);

/// The text as a cell of a table: no character of it means anything to Markdown or HTML.
std::string markdown_cell(std::string_view text);

}  // namespace msprobe::compare
