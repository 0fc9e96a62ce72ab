// SPDX-License-Identifier: Apache-2.0
// A table as bytes: for another process, which writes it into a file as if it had made the rows itself, or
// for the disk until that is done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "report/table.hpp"
#include "support/output_file.hpp"

namespace msprobe::report {

std::string pack_table(const Table& table);
/// FormatError if the bytes end early.
std::shared_ptr<const Table> unpack_table(std::string_view bytes);

/// Tables in a file without a name, so that memory does not grow with their number. It must outlive them; any
/// thread may add and read. The rows of a table are loaded when one is read, and stay as long as a Scratch
/// holds them and a little longer.
class TableStore {
 public:
  /// `folder`: where the file lies; empty: in that for temporary files.
  explicit TableStore(std::string folder);

  std::shared_ptr<const Table> add(const Table& table);
  /// From pack_table(), maybe of another process.
  std::shared_ptr<const Table> add_packed(std::string_view bytes);

 private:
  class Stored;
  std::shared_ptr<const Table> keep(const Table& table, std::string_view bytes);
  std::string read(std::uint64_t offset, std::size_t size);
  void used(std::shared_ptr<const Table> loaded);

  std::string folder_;
  std::mutex mutex_;
  std::unique_ptr<OutputFile> file_;                 // when there is something to keep
  std::deque<std::shared_ptr<const Table>> recent_;  // who reads in order finds the next row loaded
};

}  // namespace msprobe::report
