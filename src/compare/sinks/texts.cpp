// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/texts.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace msprobe::compare {
namespace {

class TextOutput final : public Sink {
 public:
  TextOutput(const TextFormat& format, std::string path, Existing existing)
      : format_(format), path_(std::move(path)), existing_(existing) {}

  void begin(const TaskPlan& /*plan*/) override {
    if (path_ != "-") prepare_output(path_, existing_);
  }
  void take(std::size_t /*task*/, const std::shared_ptr<const Rows>& /*rows*/,
            TaskSummary& /*summary*/) override {}
  void end(CompareReport& report) override { write_text(path_, existing_, format_.text(report), report); }

 private:
  const TextFormat& format_;
  std::string path_;
  Existing existing_;
};

}  // namespace

std::span<const TextFormat> text_formats() {
  static constexpr std::array<TextFormat, 5> kFormats = {{
      {kHtml, kHtml, nullptr},
      {kMarkdown, kMarkdown, nullptr},
      {"junit", "xml", junit_text},
      {"sarif", "sarif", sarif_text},
      {"github", "github.txt", github_text},
  }};
  return kFormats;
}

const TextFormat* text_format(std::string_view name) {
  const auto found = std::ranges::find(text_formats(), name, &TextFormat::name);
  return found == text_formats().end() ? nullptr : &*found;
}

std::unique_ptr<Sink> text_sink(const TextFormat& format, const std::string& path, Existing existing) {
  return std::make_unique<TextOutput>(format, path, existing);
}

bool write_text(const std::string& path, Existing existing, const std::string& text) {
  if (path == "-") return write_all(STDOUT_FILENO, text, "standard output");
  OutputFile file(path, existing);
  file.write(text);
  file.commit();
  return true;
}

void write_text(const std::string& path, Existing existing, const std::string& text, CompareReport& report) {
  report.pipe_closed = !write_text(path, existing, text);
  if (path != "-") report.tasks.front().files.push_back(path);
}

}  // namespace msprobe::compare
