// SPDX-License-Identifier: Apache-2.0
// Two packs held against each other: sections, result files.
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
  std::vector<Section> sections;   // all six, in the order of the workbook
  std::vector<std::string> empty;  // packs that hold no section at all
  std::vector<std::string> warnings;
  std::vector<std::string> files;

  /// Of the keys of all sections.
  Coverage coverage() const;
};

/// Compares and writes nothing. FormatError or IoError if one of the two cannot be trusted as a whole.
PackComparison compare_packs(const ComparePacksOptions& options, const Tables& tables);

/// The sheet that tells the status of each section.
RowTable summary_table(const PackComparison& comparison);

/// compare_packs(), then the members as files and the tables in the folder.
PackComparison compare_packs_to_files(const ComparePacksOptions& options, const Tables& tables);

}  // namespace msprobe::config_check
