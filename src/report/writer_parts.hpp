// SPDX-License-Identifier: Apache-2.0
// One function a format; writers.cpp chooses among them and owns the files.
#pragma once

#include <vector>

#include "report/row_blocks.hpp"
#include "report/table.hpp"
#include "report/writers.hpp"
#include "support/output_file.hpp"

namespace msprobe::report {

void write_csv(const Table& table, RowRange rows, const Sink& sink, const WriteOptions& options);
void write_json(const Table& table, const Sink& sink, const WriteOptions& options);
void write_jsonl(const Table& table, const Sink& sink, const WriteOptions& options);
void write_xlsx(const Table& table, OutputFile& file, const WriteOptions& options);
void write_xlsx(const std::vector<NamedTable>& sheets, OutputFile& file, const WriteOptions& options);

}  // namespace msprobe::report
