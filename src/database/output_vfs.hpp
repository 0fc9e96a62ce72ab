// SPDX-License-Identifier: Apache-2.0
// Lets SQLite write into an output file that has no name yet.
#pragma once

#include <memory>
#include <string>

#include "support/output_file.hpp"

namespace msprobe::database {

/// A file system of SQLite's with one file, and temporary ones. What the system refuses is kept as the
/// exception that it was, because SQLite knows only that something failed.
class OutputVfs {
 public:
  explicit OutputVfs(OutputFile& file);
  ~OutputVfs();
  OutputVfs(const OutputVfs&) = delete;
  OutputVfs& operator=(const OutputVfs&) = delete;

  const std::string& name() const;
  /// Throws what a call of SQLite's failed for, if it is known.
  void rethrow() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::database
