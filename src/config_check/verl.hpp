// SPDX-License-Identifier: Apache-2.0
// Compares two runs of verl or slime, or one run of verl with expected values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config_check/sheet.hpp"
#include "config_check/tables.hpp"
#include "report/writers.hpp"
#include "support/coverage.hpp"

namespace msprobe::config_check {

struct VerlOptions {
  std::string output;  // folder
  std::vector<report::Format> formats;
};

struct VerlResult {
  std::string headline;
  std::unique_ptr<RowTable> table;
  std::size_t compared = 0;
  Coverage coverage;  // of the parameters
  std::vector<std::string> warnings;
  std::vector<std::string> files;
};

/// Compares the configurations of two logs.
VerlResult compare_verl(const std::string& npu_log, const std::string& bench_log, const VerlOptions& options);

/// The same for logs of slime.
VerlResult compare_slime(const std::string& npu_log, const std::string& bench_log,
                         const VerlOptions& options);

/// Compares the configuration of a log with a file of expected values (YAML or JSON), or with the built-in
/// ones.
VerlResult verify_verl(const std::vector<std::string>& files, const Tables& tables,
                       const VerlOptions& options);

}  // namespace msprobe::config_check
