// SPDX-License-Identifier: Apache-2.0
#include "code_mapping/mapping.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "report/writers.hpp"
#include "sheets/csv_rows.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"
#include "support/text.hpp"

namespace msprobe::code_mapping {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestGraph = std::uint64_t{4} << 30;
constexpr std::string_view kStatistic = "statistic.csv";
constexpr std::string_view kCode = "Code Stack";
constexpr std::string_view kScope = "Scope Name";

std::string code_of(const std::vector<const IrNode*>& nodes) {
  std::vector<std::string> code;
  for (const IrNode* node : nodes) code.push_back(fmt::format("{}", fmt::join(node->lines, "\n")));
  return fmt::format("{}", fmt::join(code, "\n"));
}

std::string scopes_of(const std::vector<const IrNode*>& nodes) {
  std::vector<std::string_view> scopes;
  for (const IrNode* node : nodes) scopes.push_back(node->scope);
  return fmt::format("{}", fmt::join(scopes, "\n"));
}

std::string canonical(const std::string& path) {
  std::error_code error;
  fs::path found = fs::canonical(path, error);
  if (error) throw IoError(display(path), error.message());
  return found.string();
}

struct Data {
  std::vector<std::string> tensors;  // .npy
  std::vector<std::string> tables;   // statistic.csv

  void take(const fs::path& path) {
    if (path.extension() == ".npy") tensors.push_back(path.string());
    if (path.filename() == kStatistic) tables.push_back(path.string());
  }
};

/// Links to folders are not followed: they may lead anywhere.
Data data_in(const std::string& dump) {
  Data data;
  const std::string root = canonical(dump);
  if (!is_folder(root)) {
    data.take(root);
    return data;
  }
  std::error_code error;
  fs::recursive_directory_iterator at(root, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) data.take(at->path());
  }
  if (error) throw IoError(display(dump), error.message());
  std::sort(data.tensors.begin(), data.tensors.end());
  std::sort(data.tables.begin(), data.tables.end());
  return data;
}

/// The names that a mapping.csv has for files with numbers in place of names.
class LongNames {
 public:
  const std::string& of(const fs::path& file) {
    static const std::string unknown;
    const auto [folder, is_new] = folders_.try_emplace(file.parent_path().string());
    if (is_new) folder->second = read(folder->first + "/mapping.csv");
    const auto found = folder->second.find(file.filename().string());
    return found == folder->second.end() ? unknown : found->second;
  }

 private:
  using Names = std::map<std::string, std::string>;

  static Names read(const std::string& path) {
    Names names;
    if (!path_exists(path)) {
      log_warning(display(path) + " is missing: the nodes of files that have numbers for names are unknown");
      return names;
    }
    const auto file = open_file(path);
    sheets::CsvRows rows(*file);
    std::vector<std::string> fields;
    while (rows.next(fields))
      if (fields.size() >= 2) names.insert_or_assign(fields[0], fields[1]);
    return names;
  }

  std::map<std::string, Names> folders_;
};

/// "MatMul.Default_MatMul-op2.0.0.123.output.0.npy": the node, its second part.
std::string_view node_in(std::string_view name) {
  const std::size_t begin = name.find('.');
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = name.substr(begin + 1);
  const std::size_t end = rest.find('.');
  return end == std::string_view::npos ? std::string_view{} : rest.substr(0, end);
}

class TensorCodeTable final : public report::Table {
 public:
  TensorCodeTable(const Nodes& nodes, const std::vector<std::string>& files)
      : files_(files), columns_{"File Path", std::string(kCode), std::string(kScope)} {
    LongNames long_names;
    for (const std::string& path : files) {
      const fs::path file(path);
      const std::string stem = file.stem().string();
      found_.push_back(nodes.find(node_in(is_digits(stem) ? long_names.of(file) : file.filename().string())));
    }
  }

  const std::vector<std::string>& columns() const override { return columns_; }
  std::size_t rows() const override { return files_.size(); }
  void row(std::size_t index, std::vector<report::Cell>& cells, report::Scratch& scratch) const override {
    cells.clear();
    scratch.clear();
    cells.emplace_back(report::Text{files_[index]});
    cells.emplace_back(report::Text{scratch.keep(code_of(found_[index]))});
    cells.emplace_back(report::Text{scratch.keep(scopes_of(found_[index]))});
  }

  std::size_t mapped() const {
    return static_cast<std::size_t>(
        std::count_if(found_.begin(), found_.end(), [](const auto& nodes) { return !nodes.empty(); }));
  }

 private:
  const std::vector<std::string>& files_;
  std::vector<std::string> columns_;
  std::vector<std::vector<const IrNode*>> found_;
};

std::string line_of(const std::vector<std::string>& fields) {
  std::vector<report::Cell> cells;
  for (const std::string& field : fields) cells.emplace_back(report::Text{field});
  return report::csv_line(cells);
}

/// The place of a column, which is added at the end where it is missing.
std::size_t column(std::vector<std::string>& header, std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  const auto at = static_cast<std::size_t>(found - header.begin());
  if (found == header.end()) header.emplace_back(name);
  return at;
}

/// The table with both columns, not yet under its name.
OutputFile with_code(const std::string& path, const Nodes& nodes, Result& result) {
  const auto file = open_file(path);
  sheets::CsvRows rows(*file);
  std::vector<std::string> fields;
  if (!rows.next(fields)) throw FormatError(display(path), "an empty file");
  const auto name = std::find(fields.begin(), fields.end(), "Op Name");
  if (name == fields.end()) throw FormatError(display(path), "no column Op Name");
  const auto name_at = static_cast<std::size_t>(name - fields.begin());
  const std::size_t code_at = column(fields, kCode);
  const std::size_t scope_at = column(fields, kScope);
  const std::size_t columns = fields.size();
  OutputFile out(path);
  out.write(line_of(fields));
  while (rows.next(fields)) {
    const std::size_t given = std::min(code_at, scope_at);
    // MindSpore ends rows, but not the header, with a comma.
    if (fields.size() == given + 1 && fields.back().empty()) fields.pop_back();
    if (fields.size() <= name_at || fields.size() > columns)
      throw FormatError(display(path), "line " + std::to_string(rows.line()) + ": " +
                                           std::to_string(fields.size()) + " columns");
    fields.resize(columns);
    const std::vector<const IrNode*> found = nodes.find(fields[name_at]);
    fields[code_at] = code_of(found);
    fields[scope_at] = scopes_of(found);
    ++result.tensors;
    if (!found.empty()) ++result.mapped;
    out.write(line_of(fields));
  }
  return out;
}

}  // namespace

Result map_code(const std::string& ir, const std::string& dump, const std::string& output) {
  const std::string text = read_all(*open_file(ir), kLargestGraph);
  const Nodes nodes(text);
  if (nodes.empty())
    throw FormatError(display(ir), "no node with a scope: this is not a graph file of MindSpore");
  const Data data = data_in(dump);
  Result result;
  if (!data.tensors.empty()) {
    const TensorCodeTable table(nodes, data.tensors);
    create_directories(output);
    result.files = report::write_file(table, report::Format::csv,
                                      output + "/code_mapping_" + result_time(output) + ".csv");
    result.tensors = table.rows();
    result.mapped = table.mapped();
    return result;
  }
  if (data.tables.empty())
    throw FormatError(display(dump),
                      "no .npy file and no statistic.csv: this is not a dump of a static graph");
  std::vector<OutputFile> files;
  for (const std::string& path : data.tables) files.push_back(with_code(path, nodes, result));
  OutputFile::commit_all(files);
  result.files = data.tables;
  return result;
}

}  // namespace msprobe::code_mapping
