// SPDX-License-Identifier: Apache-2.0
// Lets SQLite write into an output file that has no name yet.
#pragma once

#include <memory>
#include <string>

#include "support/output_file.hpp"

namespace msprobe::database {

/// A file system for SQLite with one file, and temporary ones. It keeps the system's errors as exceptions,
/// because SQLite reports only that something failed.
class OutputVfs {
 public:
  explicit OutputVfs(OutputFile& file);
  ~OutputVfs();
  OutputVfs(const OutputVfs&) = delete;
  OutputVfs& operator=(const OutputVfs&) = delete;

  const std::string& name() const;
  /// Throws the reason why a call of SQLite failed, if it is known.
  void rethrow() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::database
