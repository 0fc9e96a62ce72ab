// SPDX-License-Identifier: Apache-2.0
#include "report/writers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "report/terminal.hpp"
#include "report/writer_parts.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::report {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"csv", "xlsx", "json", "jsonl"};

/// Leaves a writer when the reader of standard output is gone.
struct ClosedPipe {};

std::string part_path(const std::string& path, std::size_t number) {
  const std::filesystem::path whole(path);
  std::filesystem::path name = whole.stem();
  name += "_part_" + std::to_string(number);
  name += whole.extension();
  return (whole.parent_path() / name).string();
}

std::vector<std::string> write_csv_files(const Table& table, const std::string& path,
                                         const WriteOptions& options) {
  const std::size_t rows = table.rows();
  const std::size_t limit = std::max<std::uint64_t>(options.csv_rows_per_file, 1);
  const std::size_t parts = std::max<std::size_t>(1, rows / limit + (rows % limit != 0 ? 1 : 0));
  std::vector<OutputFile> files;
  std::vector<std::string> names;
  files.reserve(parts);
  for (std::size_t i = 0; i < parts; ++i) {
    names.push_back(parts == 1 ? path : part_path(path, i + 1));
    OutputFile& file = files.emplace_back(names.back(), options.existing);
    const std::size_t first = i * limit;
    write_csv(
        table, {first, first + std::min(limit, rows - first)},
        [&](std::string_view bytes) { file.write(bytes); }, options);
    file.finish();
  }
  check_interrupt();
  OutputFile::commit_all(files);
  return names;
}

}  // namespace

std::optional<Format> format_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Format>(found - kNames.begin());
}

std::optional<Format> format_of_file(std::string_view path) {
  const std::size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] == '/') return std::nullopt;
  return format_from_name(path.substr(dot + 1));
}

std::string_view extension(Format format) {
  return kNames.at(static_cast<std::size_t>(format));
}

std::vector<std::string> write_file(const Table& table, Format format, const std::string& path,
                                    const WriteOptions& options) {
  if (format == Format::csv) return write_csv_files(table, path, options);
  OutputFile file(path, options.existing);
  const auto sink = [&](std::string_view bytes) { file.write(bytes); };
  if (format == Format::xlsx) {
    write_xlsx(table, file, options);
  } else if (format == Format::json) {
    write_json(table, sink, options);
  } else {
    write_jsonl(table, sink, options);
  }
  check_interrupt();
  file.commit();
  return {path};
}

void write_workbook(const std::vector<NamedTable>& sheets, const std::string& path,
                    const WriteOptions& options) {
  OutputFile file(path, options.existing);
  write_xlsx(sheets, file, options);
  check_interrupt();
  file.commit();
}

bool to_stdout(const std::function<void(const Sink&)>& write) {
  try {
    write([](std::string_view bytes) {
      if (!write_all(STDOUT_FILENO, bytes, "standard output")) throw ClosedPipe();
    });
  } catch (const ClosedPipe&) {
    return false;
  }
  return true;
}

bool write_stdout(const Table& table, Format format, const WriteOptions& options) {
  return to_stdout([&](const Sink& sink) {
    switch (format) {
      case Format::csv:
        write_csv(table, {0, table.rows()}, sink, options);
        break;
      case Format::json:
        write_json(table, sink, options);
        break;
      case Format::jsonl:
        write_jsonl(table, sink, options);
        break;
      case Format::xlsx: {
        if (is_terminal(STDOUT_FILENO)) {
          throw UsageError("a workbook cannot be shown on a terminal", "send it to a file or a pipe");
        }
        OutputFile file = OutputFile::unnamed();  // a zip archive is not written from front to back
        write_xlsx(table, file, options);
        std::vector<char> buffer(std::size_t{256} << 10);
        for (std::uint64_t at = 0; at < file.size();) {
          const std::size_t size = std::min<std::uint64_t>(buffer.size(), file.size() - at);
          file.read_at(at, {buffer.data(), size});
          sink({buffer.data(), size});
          at += size;
        }
        break;
      }
    }
  });
}

}  // namespace msprobe::report
