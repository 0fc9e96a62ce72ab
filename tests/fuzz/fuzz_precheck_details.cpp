// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "precheck/precision_compare/compare.hpp"
#include "precheck/precision_compare/tables.hpp"

FUZZ_READER(precheck_details)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  using namespace msprobe::precheck;
  static const Standards standards = Standards::built_in();
  const DetailsFile file = DetailsFile::read(*fuzz_input(data, size));
  DetailsFile other = file;
  if (!other.rows.empty()) other.rows.pop_back();
  for (const std::optional<Selection> selection :
       {std::optional<Selection>(), std::optional(Selection::release_8),
        std::optional(Selection::release_26)}) {
    const PrecisionResult result = compare_precision(file, other, standards, selection);
    if (result.rows.size() != file.rows.size()) throw std::logic_error("another number of rows");
    PrecisionLook look;
    for (const auto& table : {details_table(result, look), operations_table(result, look)}) {
      std::vector<report::Cell> cells;
      report::Scratch scratch;
      for (std::size_t i = 0; i < table->rows(); ++i) {
        table->row(i, cells, scratch);
        if (cells.size() != table->columns().size())
          throw std::logic_error("a row with another number of cells");
      }
    }
  }
}
