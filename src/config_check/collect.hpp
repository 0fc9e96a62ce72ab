// SPDX-License-Identifier: Apache-2.0
// Collects a pack with the facts that are known before the training starts: environment, packages, launch
// scripts.
#pragma once

#include <string>
#include <vector>

#include "config_check/tables.hpp"
#include "pack/packages.hpp"
#include "support/output_file.hpp"

namespace msprobe::config_check {

struct CollectOptions {
  std::vector<std::string> files;  // scripts and YAML files, in the order in which they are merged
  std::string output = "./config_check_pack.zip";
  Existing existing = Existing::refuse;
  std::string python;       // the interpreter whose packages are listed; empty: that of the PATH
  bool only_table = false;  // only variables of the environment that the table names
  const char* const* variables = nullptr;  // as `environ`
};

struct CollectResult {
  std::string output;
  std::size_t variables = 0;
  std::size_t packages = 0;
  std::size_t parameters = 0;
  std::string interpreter;
  std::vector<std::string> warnings;
  std::vector<std::string> failures;  // files that could not be read
};

/// Writes the pack. UsageError for names that cannot be, before anything is written.
CollectResult collect(const CollectOptions& options, const Tables& tables, const pack::Lookup& environment);

}  // namespace msprobe::config_check
