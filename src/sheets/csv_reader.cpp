// SPDX-License-Identifier: Apache-2.0
#include "sheets/csv_reader.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::sheets {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;

class CsvReader {
 public:
  CsvReader(const ByteSource& file, const RowVisitor& visit) : file_(file), visit_(visit) {}

  void run() {
    std::vector<std::byte> chunk(kChunk);
    for (std::uint64_t at = 0; at < file_.size();) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file_.size() - at));
      file_.read_at(at, std::span(chunk).first(size));
      std::string_view text(reinterpret_cast<const char*>(chunk.data()), size);
      if (at == 0 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
      at += size;
      read(text);
    }
    if (state_ == State::quoted) fail("a quote is not closed");
    if (state_ != State::start || !ends_.empty()) end_row();
  }

 private:
  enum class State { start, plain, quoted, closed };

  void read(std::string_view text) {
    while (!text.empty()) {
      if (state_ == State::quoted || state_ == State::plain) {
        // The inside of a field in one piece.
        const std::size_t length =
            std::min(text.find_first_of(state_ == State::quoted ? "\"" : ",\n\r\""), text.size());
        append(text.substr(0, length));
        text.remove_prefix(length);
        if (text.empty()) return;
      }
      const char c = text.front();
      text.remove_prefix(1);
      take(c);
    }
  }

  void take(char c) {
    if (state_ == State::quoted) {
      state_ = State::closed;
      return;
    }
    if (c == '"') {
      if (state_ == State::plain) {
        append("\"");
        return;
      }
      if (state_ == State::closed) append("\"");
      state_ = State::quoted;
      return;
    }
    if (c == '\r') {
      // Part of the line's end, or nothing that belongs into a field.
      returned_ = true;
      return;
    }
    if (c == ',') {
      if (returned_) fail("a carriage return inside a line");
      end_field();
      return;
    }
    if (c == '\n') {
      const bool blank = state_ == State::start && ends_.empty();
      if (!blank) end_row();
      returned_ = false;
      state_ = State::start;
      ++line_;
      return;
    }
    if (state_ == State::closed) fail("text behind a closing quote");
    state_ = State::plain;
    append({&c, 1});
  }

  void append(std::string_view text) {
    if (text.empty()) return;
    if (returned_) fail("a carriage return inside a line");
    if (text_.size() + text.size() > kMostRowText) fail("a row of more than 16 MiB");
    if (state_ == State::quoted)
      line_ += static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    text_ += text;
  }

  void end_field() {
    if (ends_.size() + 1 > kMostColumns) fail("too many columns");
    ends_.push_back(text_.size());
    state_ = State::start;
  }

  void end_row() {
    end_field();
    cells_.clear();
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      cells_.push_back({Cell::Kind::text, 0, std::string_view(text_).substr(begin, end - begin)});
      begin = end;
    }
    visit_(cells_);
    ends_.clear();
    text_.clear();
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw FormatError(display(file_.name()), "line " + std::to_string(line_) + ": " + reason);
  }

  const ByteSource& file_;
  const RowVisitor& visit_;
  State state_ = State::start;
  bool returned_ = false;  // a carriage return stands before this
  std::uint64_t line_ = 1;
  std::string text_;               // the fields of the row, one behind the other
  std::vector<std::size_t> ends_;  // of the fields in it
  std::vector<Cell> cells_;
};

}  // namespace

void read_csv(const ByteSource& file, const RowVisitor& visit) {
  CsvReader(file, visit).run();
}

}  // namespace msprobe::sheets
