// SPDX-License-Identifier: Apache-2.0
// A table as bytes: for another process, which writes it into a file as if it had made the rows itself, or
// for the disk until that is done.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "report/table.hpp"
#include "support/spill_file.hpp"

namespace msprobe::report {

std::string pack_table(const Table& table);
/// FormatError if the bytes end early.
std::shared_ptr<const Table> unpack_table(std::string_view bytes);

/// Tables on the disk, so that memory does not grow with their number. It must outlive them; any thread may
/// add and read. Rows are loaded some thousands at a time, and stay as long as a Scratch holds them and a
/// little longer.
class TableStore {
 public:
  /// `output`: the file that the tables go to in the end; the temporary file is beside it (see SpillFile).
  explicit TableStore(std::string output) : file_(std::move(output)) {}

  std::shared_ptr<const Table> add(const Table& table);

 private:
  class Stored;
  void used(std::shared_ptr<const Table> loaded);

  SpillFile file_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<const Table>> recent_;  // a reader that goes in order finds the next row loaded
};

}  // namespace msprobe::report
