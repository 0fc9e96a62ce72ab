// SPDX-License-Identifier: Apache-2.0
#include "parse/parse.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "parse/convert.hpp"
#include "parse/find_files.hpp"
#include "parse/output_names.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::parse {
namespace {

constexpr const char kFailedList[] = "convert_failed_file_list.txt";
constexpr const char kMapping[] = "mapping.csv";
constexpr std::uint64_t kMaxMapping = std::uint64_t{64} << 20;

std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? std::string() : name.substr(0, slash + 1);
}

/// Files whose results would have the same name as those of an earlier file, each with that file.
std::map<std::string, std::string> namesakes(const InputFiles& inputs, const ParseOptions& options) {
  std::map<std::string, std::string> first;
  std::map<std::string, std::string> later;
  for (const std::string& name : inputs.names) {
    const std::string file = name.substr(folder_of(name).size());
    if (!named_by_stem(file, options)) continue;
    const auto [place, inserted] = first.try_emplace(folder_of(name) + stem_of(file), name);
    if (!inserted) later.emplace(name, place->second);
  }
  return later;
}

/// Adds lines to mapping.csv of a folder, except those that it has already.
void write_mapping(const std::string& folder, const std::vector<RenamedResult>& renamed) {
  const std::string path = folder + kMapping;
  std::string text;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    text = read_all(*open_file(path), kMaxMapping);
    if (!text.empty() && text.back() != '\n') text += '\n';
  }
  std::set<std::string> lines;
  for (const std::string_view line : split(text, "\n")) lines.emplace(line);
  for (const RenamedResult& each : renamed) {
    const std::string line = each.now + "," + display(each.wanted);
    if (lines.insert(line).second) text += line + "\n";
  }
  OutputFile file(path);
  file.write(text);
  file.commit();
}

/// Writes the list of failed files. If nothing failed, the list of an earlier run is removed.
void write_failed_list(const InputFiles& inputs, ParseReport& report, const std::string& path) {
  std::string text;
  for (const FileResult& file : report.files) {
    if (file.failed()) text += display(inputs.path(file.file)) + "\n";
  }
  if (text.empty()) {
    ::unlink(path.c_str());
    return;
  }
  OutputFile file(path);
  file.write(text);
  file.commit();
  report.failed_list = path;
}

}  // namespace

bool FileResult::failed() const {
  return !problem.empty() ||
         std::ranges::any_of(tensors, [](const TensorResult& each) { return !each.problem.empty(); });
}

std::size_t ParseReport::failures() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(files, [](const FileResult& file) { return file.failed(); }));
}

ParseReport parse(const ParseOptions& options, Progress* progress) {
  InputFiles inputs = find_files(options.input, options.recursive, options.output_directory);
  create_directories(options.output_directory);

  ParseReport report;
  report.files.resize(inputs.names.size());
  std::vector<std::vector<RenamedResult>> renamed(inputs.names.size());
  const std::map<std::string, std::string> twins = namesakes(inputs, options);
  Converter converter(options, inputs);
  if (progress != nullptr) progress->begin("converting", inputs.names.size(), "files");
  parallel_for(inputs.names.size(), [&](std::size_t i) {
    const std::string& name = inputs.names[i];
    if (const auto twin = twins.find(name); twin != twins.end()) {
      report.files[i].file = name;
      report.files[i].problem =
          "refused: its result would have the same name as that of " + display(twin->second);
    } else {
      report.files[i] = converter.convert(name, renamed[i]);
    }
    log_verbose(fmt::format("{}: {}", display(inputs.path(name)),
                            report.files[i].failed() ? "not converted, or not all of it" : "converted"));
    if (progress != nullptr) progress->advance();
  });
  if (progress != nullptr) progress->end();

  for (const RefusedFile& refused : inputs.refused) {
    FileResult& result = report.files.emplace_back();
    result.file = refused.name;
    result.problem = refused.reason;
  }
  std::ranges::sort(report.files, [](const FileResult& a, const FileResult& b) { return a.file < b.file; });
  report.skipped = std::move(inputs.skipped);

  std::map<std::string, std::vector<RenamedResult>> by_folder;
  for (std::size_t i = 0; i < renamed.size(); ++i) {
    auto& all = by_folder[folder_of(inputs.names[i])];
    all.insert(all.end(), renamed[i].begin(), renamed[i].end());
  }
  for (const auto& [folder, of_folder] : by_folder) {
    if (!of_folder.empty()) write_mapping(options.output_directory + "/" + folder, of_folder);
  }
  if (!inputs.single) write_failed_list(inputs, report, options.output_directory + "/" + kFailedList);
  return report;
}

}  // namespace msprobe::parse
