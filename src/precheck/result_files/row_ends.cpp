// SPDX-License-Identifier: Apache-2.0
#include "precheck/result_files/row_ends.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "support/interrupt.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 18;
constexpr std::size_t kMostFirst = 4096;

}  // namespace

std::uint64_t each_row_end(const ByteSource& file, const std::function<void(const RowEnd&)>& visit) {
  static constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::vector<std::byte> piece;
  std::string first;
  bool in_first = true;
  bool in_quotes = false;
  std::uint64_t begin = 0;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    check_interrupt();
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, file.size() - at)));
    file.read_at(at, piece);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const char c = static_cast<char>(piece[i]);
      if (c == '"') {
        in_quotes = !in_quotes;  // a doubled quote toggles it twice
      } else if (c == '\n' && !in_quotes) {
        const std::uint64_t end = at + i + 1;
        std::string_view name = first;
        if (begin == 0 && name.starts_with(kMark)) name.remove_prefix(kMark.size());
        visit({name, end});
        begin = end;
        first.clear();
        in_first = true;
      } else if (c == ',' && !in_quotes) {
        in_first = false;
      } else if (in_first && first.size() < kMostFirst && (in_quotes || c != '\r')) {
        first += c;
      }
    }
  }
  return begin;
}

}  // namespace msprobe::precheck
