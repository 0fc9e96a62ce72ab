// SPDX-License-Identifier: Apache-2.0
#include "sheets/csv_rows.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::sheets {
namespace {

constexpr std::uint64_t kPiece = 256 * 1024;

}  // namespace

CsvRows::CsvRows(const ByteSource& file) : file_(file) {
  static constexpr unsigned char kMark[] = {0xEF, 0xBB, 0xBF};
  if (file.size() < sizeof kMark) return;
  std::byte start[sizeof kMark];
  file.read_at(0, start);
  if (std::equal(std::begin(start), std::end(start), std::begin(kMark),
                 [](std::byte a, unsigned char b) { return std::to_integer<unsigned char>(a) == b; })) {
    offset_ = sizeof kMark;
  }
}

int CsvRows::peek() {
  if (at_ == buffer_.size()) {
    const std::uint64_t rest = file_.size() - offset_;
    if (rest == 0) return kEnd;
    buffer_.resize(static_cast<std::size_t>(std::min(rest, kPiece)));
    file_.read_at(offset_, buffer_);
    offset_ += buffer_.size();
    at_ = 0;
  }
  return std::to_integer<unsigned char>(buffer_[at_]);
}

int CsvRows::get() {
  const int byte = peek();
  if (byte != kEnd) ++at_;
  if (byte == '\n') ++line_;
  return byte;
}

void CsvRows::fail(const char* reason) const {
  throw FormatError(display(file_.name()), "line " + std::to_string(row_line_) + ": " + reason);
}

void CsvRows::add(std::string& field, int byte) {
  if (byte == 0) fail("a NUL byte: this is no csv file");
  if (++row_bytes_ > kMaxRowBytes) fail("a row longer than 1 MiB");
  field.push_back(static_cast<char>(byte));
}

void CsvRows::read_quoted(std::string& field) {
  for (;;) {
    const int byte = get();
    if (byte == kEnd) fail("a quote is not closed");
    if (byte != '"') {
      add(field, byte);
    } else if (peek() == '"') {
      add(field, get());
    } else {
      break;
    }
  }
  const int after = peek();
  if (after != kEnd && after != ',' && after != '\n' && after != '\r') fail("text behind a closing quote");
}

void CsvRows::read_row(std::vector<std::string>& fields) {
  fields.emplace_back();
  for (;;) {
    const int byte = get();
    if (byte == kEnd || byte == '\n') return;
    if (byte == '\r' && (peek() == '\n' || peek() == kEnd)) {
      get();
      return;
    }
    if (byte == ',') {
      if (fields.size() == kMaxFields) fail("more than 4096 columns");
      ++row_bytes_;
      fields.emplace_back();
    } else if (byte == '"' && fields.back().empty()) {
      read_quoted(fields.back());
    } else {
      add(fields.back(), byte);
    }
  }
}

bool CsvRows::next(std::vector<std::string>& fields) {
  while (peek() != kEnd) {
    row_line_ = line_;
    row_bytes_ = 0;
    fields.clear();
    read_row(fields);
    if (fields.size() > 1 || !fields.front().empty()) return true;
  }
  fields.clear();
  return false;
}

}  // namespace msprobe::sheets
