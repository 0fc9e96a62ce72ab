// SPDX-License-Identifier: Apache-2.0
#include "compare/output.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

namespace msprobe::compare {

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(now));
}

std::vector<std::string> write_files(const report::Table& table, const CompareOptions& options,
                                     const std::string& stem, bool add_extension) {
  std::vector<std::string> files;
  for (const report::Format format : options.formats) {
    const std::string path = add_extension ? stem + "." + std::string(report::extension(format)) : stem;
    for (std::string& file : report::write_file(table, format, path)) files.push_back(std::move(file));
  }
  return files;
}

}  // namespace msprobe::compare
