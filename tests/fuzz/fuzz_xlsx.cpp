// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "fuzz_input.hpp"
#include "fuzz_target.hpp"
#include "sheets/xlsx_reader.hpp"

FUZZ_READER(xlsx)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe::sheets;
  XlsxLimits limits;
  limits.shared_bytes = std::uint64_t{1} << 20;
  std::size_t seen = 0;
  read_xlsx(
      msprobe::fuzz_input(data, size), [&](std::string_view name) { seen += name.size(); },
      [&](std::span<const Cell> cells) {
        if (cells.empty() || cells.size() > kMostColumns) throw std::logic_error("a row without cells");
        for (const Cell& cell : cells) {
          for (const char c : cell.text) seen += static_cast<unsigned char>(c);
          if (cell.number != cell.number) throw std::logic_error("a number that is none");
        }
      },
      limits);
}
