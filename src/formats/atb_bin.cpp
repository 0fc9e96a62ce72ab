// SPDX-License-Identifier: Apache-2.0
#include "formats/atb_bin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/limits.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::uint64_t kMaxTextHeader = std::uint64_t{1} << 20;
constexpr std::uint64_t kHeaderPiece = 4096;
constexpr int kMaxLinks = 8;

struct AtbHeader {
  std::int64_t dtype = 0;
  std::vector<std::int64_t> dims;
  std::string link;
  std::uint64_t end = 0;  // where the payload begins
};

[[noreturn]] void fail(const ByteSource& file, const std::string& reason) {
  throw FormatError(display(file.name()), reason);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<std::int64_t> integer(std::string_view text) {
  text = trim(text);
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  return whole_number<std::int64_t>(text);
}

std::optional<DType> dtype_of_code(std::int64_t code) {
  switch (code) {
    case 0:
      return DType::float32;
    case 1:
      return DType::float16;
    case 2:
      return DType::int8;
    case 3:
      return DType::int32;
    case 9:
      return DType::int64;
    case 12:
      return DType::boolean;
    case 27:
      return DType::bfloat16;
    default:
      return std::nullopt;
  }
}

/// Returns the lines of the header one by one and records the offset where each ends.
class HeaderLines {
 public:
  explicit HeaderLines(const ByteSource& file) : file_(file) {}

  /// The next line without its LF; nothing at the end of the file or of what a header may take.
  std::optional<std::string> next() {
    std::size_t searched = 0;
    while (true) {
      const std::size_t found = buffer_.find('\n', searched);
      if (found != std::string::npos) {
        std::string line = buffer_.substr(0, found);
        buffer_.erase(0, found + 1);
        position_ += found + 1;
        return line;
      }
      searched = buffer_.size();
      const std::uint64_t at = position_ + buffer_.size();
      const std::uint64_t count =
          std::min({kHeaderPiece, file_.size() - at, kMaxTextHeader - std::min(at, kMaxTextHeader)});
      if (count == 0) return std::nullopt;
      buffer_.resize(searched + static_cast<std::size_t>(count));
      file_.read_at(at, std::as_writable_bytes(std::span(buffer_)).subspan(searched));
    }
  }
  std::uint64_t position() const { return position_; }

 private:
  const ByteSource& file_;
  std::string buffer_;
  std::uint64_t position_ = 0;
};

void read_dims(const ByteSource& file, std::string_view text, AtbHeader& header) {
  header.dims.clear();
  for (const std::string_view part : split(text, ",")) {
    const auto length = integer(part);
    if (!length || *length < 0) fail(file, "the dims in its header are not a list of sizes");
    if (header.dims.size() == kMaxRank) fail(file, fmt::format("refused: more than {} dimensions", kMaxRank));
    header.dims.push_back(*length);
  }
}

AtbHeader read_header(const ByteSource& file) {
  if (file.size() == 0) fail(file, "an empty file");
  AtbHeader header;
  HeaderLines lines(file);
  for (int number = 1;; ++number) {
    const auto line = lines.next();
    if (!line) fail(file, "not an ATB file: no line $End closes a header");
    if (!is_utf8(*line))
      fail(file, fmt::format("not an ATB file: line {} of the header is not text", number));
    const std::size_t equals = line->find('=');
    if (equals == std::string::npos || line->find('=', equals + 1) != std::string::npos)
      fail(file, fmt::format("not an ATB file: line {} of the header is not name=value", number));
    const std::string_view name = std::string_view(*line).substr(0, equals);
    const std::string_view value = std::string_view(*line).substr(equals + 1);
    if (name == "$End") break;
    if (name == "format" || name == "dtype") {
      const auto code = integer(value);
      if (!code) fail(file, fmt::format("the {} in its header is not an integer", name));
      if (name == "dtype") header.dtype = *code;
    } else if (name == "dims") {
      read_dims(file, value, header);
    } else if (name == "data") {
      header.link = trim(value);
    }
  }
  header.end = lines.position();
  return header;
}

}  // namespace

StoredTensor open_atb_bin(const std::shared_ptr<const ByteSource>& file, const OpenBeside& open_beside) {
  const AtbHeader header = read_header(*file);
  const auto dtype = dtype_of_code(header.dtype);
  if (!dtype) fail(*file, fmt::format("element type {} is not supported", header.dtype));
  auto bytes = static_cast<std::int64_t>(tensor::info(*dtype).size);
  for (const std::int64_t length : header.dims) {
    if (length == 0) fail(*file, "a tensor without elements");
    if (__builtin_mul_overflow(bytes, length, &bytes)) fail(*file, "more elements than memory can hold");
  }

  // A `data` line may name another file of the folder as the holder of the bytes; that file may again name a
  // third.
  std::shared_ptr<const ByteSource> holder = file;
  std::uint64_t begin = header.end;
  std::string link = header.link;
  for (int links = 0; !link.empty(); ++links) {
    if (links == kMaxLinks) fail(*file, "its links to other files never end");
    if (link.find('/') != std::string::npos || link == "." || link == "..")
      fail(*file, fmt::format("refused: its data lies outside its folder: {}", display(link)));
    if (!open_beside) fail(*file, fmt::format("its data is in another file: {}", display(link)));
    holder = open_beside(link);
    AtbHeader next = read_header(*holder);
    begin = next.end;
    link = std::move(next.link);
  }
  const std::uint64_t found = holder->size() - begin;
  if (found != static_cast<std::uint64_t>(bytes)) {
    std::string reason = fmt::format("its header says {} bytes of data, but it has {}", bytes, found);
    if (holder != file) reason += fmt::format(" in {}", display(holder->name()));
    if (found > static_cast<std::uint64_t>(bytes) + 9) {
      std::string second(9, '\0');
      holder->read_at(begin + static_cast<std::uint64_t>(bytes), std::as_writable_bytes(std::span(second)));
      if (second == "$Version=") reason += " (a second record follows: two dumps went to one folder)";
    }
    fail(*file, reason);
  }

  StoredTensor result;
  result.dtype = *dtype;
  result.shape = header.dims;
  result.strides = row_major_strides(result.shape);
  result.storage = slice_source(std::move(holder), begin, found);
  return result;
}

}  // namespace msprobe::formats
