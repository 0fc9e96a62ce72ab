// SPDX-License-Identifier: Apache-2.0
// The answer for what runs the comparison: build servers, code hosts. Texts that follow from the report
// alone.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compare/imports.hpp"
#include "compare/sinks/sink.hpp"
#include "support/output_file.hpp"

namespace msprobe::compare {

struct TextFormat {
  std::string_view name;    // of --format
  std::string_view ending;  // of the names of files
  std::string (*text)(const CompareReport& report);
};

std::span<const TextFormat> text_formats();
/// The one of that name, or null.
const TextFormat* text_format(std::string_view name);

/// Written at the end, to the file or for "-" to standard output. The folder is made if it is not there.
std::unique_ptr<Sink> text_sink(const TextFormat& format, const std::string& path, Existing existing);

/// Writes it so. False if the reader of standard output went away.
bool write_text(const std::string& path, Existing existing, const std::string& text);
/// The same, and notes in the report where it went.
void write_text(const std::string& path, Existing existing, const std::string& text, CompareReport& report);

/// JUnit XML: a testsuite for the whole, one for each task.
std::string junit_text(const CompareReport& report);
/// SARIF 2.1.0: a result for each fault of its own.
std::string sarif_text(const CompareReport& report);
/// Workflow commands of GitHub, one a line.
std::string github_text(const CompareReport& report);

}  // namespace msprobe::compare
