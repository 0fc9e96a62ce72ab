// SPDX-License-Identifier: Apache-2.0
// The answer for programs that run the comparison (build servers, code hosts), as texts that need only the
// report.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {

struct TextFormat {
  std::string_view name;                             // as --format names it
  std::string_view ending;                           // of the names of files
  std::string (*text)(const CompareReport& report);  // null: it shows rows, too, and another sink writes it
};

/// The formats of texts about all tasks.
std::span<const TextFormat> text_formats();
/// The format of that name, or null.
const TextFormat* text_format(std::string_view name);
inline constexpr std::string_view kHtml = "html";
inline constexpr std::string_view kMarkdown = "md";

/// Writes the text at the end, to the file or, for "-", to standard output. Creates the folder.
std::unique_ptr<Sink> text_sink(const TextFormat& format, const std::string& path, Existing existing);

/// Writes a text in this way. Returns false if the reader of standard output went away.
bool write_text(const std::string& path, Existing existing, const std::string& text);
/// The same, and notes the file in the report.
void write_text(const std::string& path, Existing existing, const std::string& text, CompareReport& report);

/// JUnit XML: a testsuite for the whole, and one for each task.
std::string junit_text(const CompareReport& report);
/// SARIF 2.1.0: a result for each independent fault.
std::string sarif_text(const CompareReport& report);
/// Workflow commands of GitHub, one per line.
std::string github_text(const CompareReport& report);

}  // namespace msprobe::compare
