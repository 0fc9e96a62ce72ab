// SPDX-License-Identifier: Apache-2.0
// Compares two packs and writes the result files.
#pragma once

#include <string>
#include <vector>

#include "config_check/sheet.hpp"
#include "config_check/tables.hpp"
#include "report/writers.hpp"

namespace msprobe::config_check {

struct ComparePacksOptions {
  std::string bench;
  std::string cmp;
  std::string output = "./config_check_result";  // folder; `-`: standard output, as jsonl
  std::vector<report::Format> formats = {report::Format::xlsx};
  bool all_packages = false;
};

struct PackComparison {
  std::vector<SheetSection> sections;  // all six, in the order of the workbook
  std::vector<std::string> empty;      // packs without any section
  std::vector<std::string> warnings;
  std::vector<std::string> files;

  /// The coverage of the keys of all sections.
  Coverage coverage() const;
};

/// The sheet with the status of each section.
RowTable summary_table(const PackComparison& comparison);

/// Compares, then writes the members as files and the tables into the folder. FormatError or IoError if one
/// of the packs is damaged.
PackComparison compare_packs(const ComparePacksOptions& options, const Tables& tables);

}  // namespace msprobe::config_check
