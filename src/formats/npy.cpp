// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxNpyHeader = std::size_t{64}
                                      << 10;  // NumPy itself refuses more than 10,000 by default

struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<std::uint64_t> record;  // bytes of an element that has fields
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

// Parses the dict literal of a header: three known keys, a string, a bool and a tuple of integers. The
// literal never nests, so the parser does not recurse.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file, bool with_records = false)
      : rest_(text), file_(file), with_records_(with_records) {}

  NpyHeader parse() {
    NpyHeader header;
    expect('{');
    while (!accept('}')) {
      const std::string key(string());
      expect(':');
      if (key == "descr") {
        if (next() != '[') {
          set(header.descr, std::string(string()));
        } else if (with_records_) {
          set(header.descr, std::string());
          header.record = record(0);
        } else {
          fail("a structured array is not supported");
        }
      } else if (key == "fortran_order") {
        set(header.fortran_order, boolean());
      } else if (key == "shape") {
        set(header.shape, shape());
      } else {
        fail(fmt::format("its header has an unknown key {}", display(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (next() != '\0') fail("its header goes on after the dict");
    if (!header.descr || !header.fortran_order || !header.shape) fail("its header lacks a key");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(file_), reason); }

  // The next character after blanks; '\0' at the end. A NUL inside the text is refused here, so it cannot
  // pass for the end.
  char next() {
    const std::size_t at = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(at, rest_.size()));
    if (!rest_.empty() && rest_.front() == '\0') fail("a zero byte in its header");
    return rest_.empty() ? '\0' : rest_.front();
  }

  bool accept(char c) {
    if (next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail("its header is malformed");
  }

  template <typename T>
  void set(std::optional<T>& target, T value) {
    if (target) fail("its header has a duplicate key");
    target = std::move(value);
  }

  std::string_view string() {
    const char quote = next();
    if (quote != '\'' && quote != '"') fail("its header is malformed");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("its header is malformed");
    const std::string_view text = rest_.substr(1, end - 1);
    if (text.find('\\') != std::string_view::npos) fail("its header is malformed");
    rest_.remove_prefix(end + 1);
    return text;
  }

  /// The size in bytes of a record type: [('name', '<f4'), (('title', 'name'), '<i8', (2, 3)), ('inner',
  /// [...])].
  std::uint64_t record(int depth) {
    constexpr int kMostDepth = 8;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    if (depth == kMostDepth) fail("its header nests too deeply");
    std::uint64_t bytes = 0;
    expect('[');
    while (!accept(']')) {
      expect('(');
      if (accept('(')) {
        string();
        expect(',');
        string();
        expect(')');
      } else {
        string();
      }
      expect(',');
      std::uint64_t size = next() == '[' ? record(depth + 1) : plain_size(string());
      if (accept(',') && next() != ')') {
        for (const std::int64_t axis : next() == '(' ? shape() : std::vector<std::int64_t>{integer()}) {
          if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(axis), &size) || size > kMost)
            fail("a record that is too large");
        }
      }
      expect(')');
      bytes += size;
      if (bytes > kMost) fail("a record that is too large");
      if (!accept(',')) {
        expect(']');
        break;
      }
    }
    return bytes;
  }

 public:
  /// The size in bytes of an element of a type without objects.
  std::uint64_t plain_size(std::string_view type) const {
    if (!type.empty() && std::string_view("<>=|").find(type.front()) != std::string_view::npos)
      type.remove_prefix(1);
    const char kind = type.empty() ? '\0' : type.front();
    const bool date = kind == 'M' || kind == 'm';
    if (std::string_view("biufcSaUVMm?").find(kind) == std::string_view::npos || kind == '\0')
      fail("elements that may be objects");
    type.remove_prefix(1);
    std::uint64_t size = kind == '?' ? 1 : 0;
    const auto [end, error] = std::from_chars(type.data(), type.data() + type.size(), size);
    if ((error != std::errc{} && kind != '?') || size > INT32_MAX) fail("an element type without a size");
    const std::string_view unit = type.substr(static_cast<std::size_t>(end - type.data()));
    const bool fine =
        date ? unit.empty() || (unit.starts_with('[') && unit.ends_with(']') && unit.size() <= 16 &&
                                unit.find_first_of("()'\"\\{}") == std::string_view::npos)
             : unit.empty();
    if (!fine) fail("an unknown element type");
    return kind == 'U' ? 4 * size : size;
  }

 private:
  bool boolean() {
    next();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    }
    fail("its header is malformed");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> axes;
    bool comma = true;
    expect('(');
    while (!accept(')')) {
      if (!comma) fail("its header is malformed");
      if (axes.size() == kMaxRank)
        fail(fmt::format("refused: an array with more than {} dimensions", kMaxRank));
      axes.push_back(integer());
      comma = accept(',');
    }
    // `(3)` is a number in Python, and `()` is written without a comma.
    if (axes.size() == 1 && !comma) fail("its header is malformed");
    return axes;
  }

  std::int64_t integer() {
    next();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) fail("an array with more elements than memory can hold");
    if (error != std::errc{}) fail("its header is malformed");
    if (value < 0) fail("an array of negative size");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (rest_.starts_with('L')) rest_.remove_prefix(1);  // Python 2 wrote a suffix L after long integers
    return value;
  }

  std::string_view rest_;
  const std::string& file_;
  bool with_records_;
};

struct ElementType {
  DType dtype;
  bool big_endian;
};

ElementType element_type(const std::string& descr, const std::string& file) {
  std::string_view code = descr;
  bool big_endian = std::endian::native == std::endian::big;
  if (!code.empty() && std::string_view("<>=|").find(code.front()) != std::string_view::npos) {
    if (code.front() == '<' || code.front() == '>') big_endian = code.front() == '>';
    code.remove_prefix(1);
  }
  for (int i = 0; i < tensor::kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const std::string_view known = dtype == DType::bfloat16 ? "<V2" : tensor::info(dtype).numpy;
    if (!known.empty() && known.substr(1) == code) return {dtype, big_endian};
  }
  const char kind = code.empty() ? '\0' : code.front();
  const char* what = "this element type";
  if (kind == 'O') what = "an object array (it carries a pickle)";
  if (kind == 'S' || kind == 'a' || kind == 'U') what = "a text array";
  if (kind == 'V') what = "an array of raw records";
  if (kind == 'M' || kind == 'm') what = "an array of dates";
  throw FormatError(display(file), fmt::format("{} is not supported: {}", what, display(descr)));
}

std::vector<std::int64_t> strides_of(std::vector<std::int64_t> shape, bool fortran_order) {
  if (!fortran_order) return row_major_strides(shape);
  std::ranges::reverse(shape);
  std::vector<std::int64_t> strides = row_major_strides(shape);
  std::ranges::reverse(strides);
  return strides;
}

struct NpyStart {
  NpyHeader header;
  std::uint64_t payload = 0;  // where the elements begin
};

NpyStart read_start(const ByteSource& file, bool with_records) {
  const auto fail = [&](const std::string& reason) { throw FormatError(display(file.name()), reason); };
  std::array<std::byte, 8> start{};
  file.read_at(0, start);
  if (!std::equal(kMagic.begin(), kMagic.end(), start.begin(),
                  [](char a, std::byte b) { return static_cast<std::byte>(a) == b; })) {
    fail("not a .npy file: its magic is missing");
  }
  const int major = std::to_integer<int>(start[6]);
  const int minor = std::to_integer<int>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail(fmt::format(".npy version {}.{} is not supported", major, minor));
  std::array<std::byte, 4> raw_length{};
  const std::size_t length_size = major == 1 ? 2 : 4;
  file.read_at(start.size(), std::span(raw_length).first(length_size));
  const auto length = load_le<std::uint32_t>(raw_length.data());
  if (length > kMaxNpyHeader) fail(fmt::format("refused: a header of {} bytes", length));
  const std::string text = read_text(file, start.size() + length_size, length);
  return {HeaderParser(text, file.name(), with_records).parse(), start.size() + length_size + length};
}

}  // namespace

StoredTensor open_npy(std::shared_ptr<const ByteSource> file) {
  const auto fail = [&](const std::string& reason) { throw FormatError(display(file->name()), reason); };
  const auto [header, payload] = read_start(*file, false);
  const ElementType type = element_type(*header.descr, file->name());
  const auto wanted = checked_size(*header.shape, tensor::info(type.dtype).size);
  if (!wanted) fail("an array with more elements than memory can hold");
  if (file->size() - payload != *wanted) {
    fail(fmt::format("its header says {} bytes of data, but it has {}", *wanted, file->size() - payload));
  }
  StoredTensor result;
  result.dtype = type.dtype;
  result.big_endian = type.big_endian;
  result.strides = strides_of(*header.shape, *header.fortran_order);
  result.shape = *header.shape;
  result.storage = slice_source(std::move(file), payload, *wanted);
  return result;
}

bool is_plain_npy(const ByteSource& file) {
  try {
    const auto [header, payload] = read_start(file, true);
    std::uint64_t size =
        header.record ? *header.record : HeaderParser({}, file.name()).plain_size(*header.descr);
    for (const std::int64_t axis : *header.shape) {
      if (__builtin_mul_overflow(size, static_cast<std::uint64_t>(axis), &size)) return false;
    }
    return file.size() - payload == size;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace msprobe::formats
