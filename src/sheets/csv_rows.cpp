// SPDX-License-Identifier: Apache-2.0
#include "sheets/csv_rows.hpp"

#include <algorithm>
#include <array>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::sheets {
namespace {

constexpr std::uint64_t kPiece = std::uint64_t{256} << 10;

constexpr std::array<bool, 256> kMeaning = [] {
  std::array<bool, 256> table{};
  for (const char c : {'\0', '\n', '\r', '"', ','}) table[static_cast<unsigned char>(c)] = true;
  return table;
}();

bool is_plain(std::byte byte) {
  return !kMeaning[std::to_integer<unsigned char>(byte)];
}

}  // namespace

CsvRows::CsvRows(const ByteSource& file) : file_(file) {
  static constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (first_bytes(file, kMark.size()) == kMark) offset_ = kMark.size();
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
  if (byte == 0) fail("a NUL byte: this is not a csv file");
  if (++row_bytes_ > kMaxRowBytes) fail("a row longer than 1 MiB");
  field.push_back(static_cast<char>(byte));
}

void CsvRows::add_plain(std::string& field) {
  const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(at_);
  const auto end = std::find_if_not(begin, buffer_.end(), is_plain);
  const auto size = static_cast<std::size_t>(end - begin);
  row_bytes_ += size;
  if (row_bytes_ > kMaxRowBytes) fail("a row longer than 1 MiB");
  field.append(reinterpret_cast<const char*>(buffer_.data()) + at_, size);
  at_ += size;
}

std::string& CsvRows::next_field(std::vector<std::string>& fields) {
  // Overwrites the texts of the row before, because most files have rows of one size.
  if (fields_ == fields.size()) fields.emplace_back();
  std::string& field = fields[fields_++];
  field.clear();
  return field;
}

void CsvRows::read_quoted(std::string& field) {
  for (;;) {
    const int byte = get();
    if (byte == kEnd) fail("a quote is not closed");
    if (byte != '"') {
      add(field, byte);
      add_plain(field);
    } else if (peek() == '"') {
      add(field, get());
    } else {
      break;
    }
  }
  const int after = peek();
  if (after != kEnd && after != ',' && after != '\n' && after != '\r') fail("text after a closing quote");
}

void CsvRows::read_row(std::vector<std::string>& fields) {
  std::string* field = &next_field(fields);
  for (;;) {
    add_plain(*field);
    const int byte = get();
    if (byte == kEnd || byte == '\n') return;
    if (byte == '\r' && (peek() == '\n' || peek() == kEnd)) {
      get();
      return;
    }
    if (byte == ',') {
      if (fields_ == kMaxFields) fail("more than 4096 columns");
      ++row_bytes_;
      field = &next_field(fields);
    } else if (byte == '"' && field->empty()) {
      read_quoted(*field);
    } else {
      add(*field, byte);
    }
  }
}

bool CsvRows::next(std::vector<std::string>& fields) {
  while (peek() != kEnd) {
    row_line_ = line_;
    row_bytes_ = 0;
    fields_ = 0;
    read_row(fields);
    fields.resize(fields_);
    if (fields.size() > 1 || !fields.front().empty()) return true;
  }
  fields.clear();
  return false;
}

}  // namespace msprobe::sheets
