// SPDX-License-Identifier: Apache-2.0
#include "formats/flax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "formats/joined_tensor.hpp"
#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr int kMostFlaxDepth = 64;
constexpr std::uint64_t kArrayExtension = 1;
constexpr std::string_view kChunked = "__msgpack_chunked_array__";

/// Reads the values of a MessagePack file one by one.
class FlaxReader {
 public:
  enum class FlaxKind { nothing, number, text, bytes, list, map, extension };
  struct FlaxValue {
    FlaxKind kind = FlaxKind::nothing;
    std::uint64_t number = 0;  // an integer, or the type of an extension
    std::uint64_t length = 0;  // bytes of a text, members of a list, pairs of a map
    std::uint64_t offset = 0;  // of bytes, in the file
  };

  explicit FlaxReader(const ByteSource& file) : file_(file) {}

  std::uint64_t at() const { return at_; }
  bool at_end() const { return at_ == file_.size(); }
  void go_to(std::uint64_t offset) { at_ = offset; }

  /// Returns the next value and skips the bytes of texts and extensions. Further calls return the members of
  /// lists and maps.
  FlaxValue next() {
    const auto head = static_cast<unsigned>(big_endian(1));
    FlaxValue value;
    if (head < 0x80) return {FlaxKind::number, head, 0, 0};
    if (head < 0x90) return {FlaxKind::map, 0, head & 0xF, 0};
    if (head < 0xA0) return {FlaxKind::list, 0, head & 0xF, 0};
    if (head < 0xC0) return with_bytes(FlaxKind::text, head & 0x1F);
    if (head >= 0xE0)
      return {FlaxKind::number, static_cast<std::uint64_t>(static_cast<std::int8_t>(head)), 0, 0};
    switch (head) {
      case 0xC0:
      case 0xC2:
      case 0xC3:
        return value;
      case 0xC4:
      case 0xC5:
      case 0xC6:
        return with_bytes(FlaxKind::bytes, big_endian(1U << (head - 0xC4)));
      case 0xC7:
      case 0xC8:
      case 0xC9:
        return extension(big_endian(1U << (head - 0xC7)));
      case 0xCA:
        return with_bytes(FlaxKind::nothing, 4);
      case 0xCB:
        return with_bytes(FlaxKind::nothing, 8);
      case 0xCC:
      case 0xCD:
      case 0xCE:
      case 0xCF:
        return {FlaxKind::number, big_endian(1U << (head - 0xCC)), 0, 0};
      case 0xD0:
      case 0xD1:
      case 0xD2:
      case 0xD3:
        // No name, shape or offset is negative, so the reader skips negative numbers.
        return with_bytes(FlaxKind::nothing, 1U << (head - 0xD0));
      case 0xD4:
      case 0xD5:
      case 0xD6:
      case 0xD7:
      case 0xD8:
        return extension(1U << (head - 0xD4));
      case 0xD9:
      case 0xDA:
      case 0xDB:
        return with_bytes(FlaxKind::text, big_endian(1U << (head - 0xD9)));
      case 0xDC:
      case 0xDD:
        return {FlaxKind::list, 0, big_endian(head == 0xDC ? 2 : 4), 0};
      case 0xDE:
      case 0xDF:
        return {FlaxKind::map, 0, big_endian(head == 0xDE ? 2 : 4), 0};
      default:
        fail("a value of an unknown kind");
    }
  }

  std::string text(const FlaxValue& value) const {
    if (value.kind != FlaxKind::text || value.length > kMaxName)
      fail("a name that is not text, or is too long");
    return read_text(file_, value.offset, value.length);
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw FormatError(display(file_.name()), "not a complete Flax checkpoint: " + reason);
  }

 private:
  FlaxValue with_bytes(FlaxKind kind, std::uint64_t length) {
    const FlaxValue value{kind, 0, length, at_};
    if (length > file_.size() - at_) fail("truncated: a value is longer than the rest of the file");
    at_ += length;
    return value;
  }
  FlaxValue extension(std::uint64_t length) {
    const std::uint64_t type = big_endian(1);
    FlaxValue value = with_bytes(FlaxKind::extension, length);
    value.number = type;
    return value;
  }
  std::uint64_t big_endian(std::size_t size) {
    if (size > file_.size() - at_) fail("truncated: a value is cut off");
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; ++i) number = number << 8 | byte_at(at_++);
    return number;
  }
  std::uint8_t byte_at(std::uint64_t offset) {
    if (offset < window_begin_ || offset >= window_begin_ + window_.size()) {
      constexpr std::uint64_t kWindow = 256;
      window_begin_ = offset;
      window_.resize(static_cast<std::size_t>(std::min(kWindow, file_.size() - offset)));
      file_.read_at(offset, std::as_writable_bytes(std::span(window_)));
    }
    return window_[static_cast<std::size_t>(offset - window_begin_)];
  }

  const ByteSource& file_;
  std::uint64_t at_ = 0;
  std::vector<std::uint8_t> window_;
  std::uint64_t window_begin_ = 0;
};

}  // namespace

class FlaxFile::Parser {
 public:
  explicit Parser(const ByteSource& file) : values_(file), allowance_(file.size()) {}

  std::vector<FlaxEntry> run() {
    const Value root = values_.next();
    if (root.kind != Kind::map) values_.fail("it is not a map");
    map("", root.length, 0);
    if (!values_.at_end()) values_.fail("bytes follow its end");
    return std::move(entries_);
  }

 private:
  using Kind = FlaxReader::FlaxKind;
  using Value = FlaxReader::FlaxValue;

  void any(const std::string& name, const Value& value, int depth) {
    if (depth == kMostFlaxDepth) values_.fail("it is nested too deeply");
    if (value.kind == Kind::map) return map(name, value.length, depth);
    if (value.kind == Kind::list) {
      for (std::uint64_t i = 0; i < value.length; ++i)
        any(fmt::format("{}.{}", name, i), values_.next(), depth + 1);
    }
    if (value.kind == Kind::extension && value.number == kArrayExtension) {
      FlaxEntry entry{name, {array(value)}, {}};
      entry.shape = entry.parts.front().shape;
      add(std::move(entry));
    }
  }

  void map(const std::string& name, std::uint64_t pairs, int depth) {
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const std::string key = values_.text(values_.next());
      if (i == 0 && key == kChunked) return chunked(name, pairs);
      any(name.empty() ? key : name + "." + key, values_.next(), depth + 1);
    }
  }

  /// Reads an array that was cut into flat pieces: a map of lengths, and one of pieces under the keys "0",
  /// "1", …
  void chunked(const std::string& name, std::uint64_t pairs) {
    FlaxEntry entry{name, {}, {}};
    values_.next();
    for (std::uint64_t i = 1; i < pairs; ++i) {
      const std::string key = values_.text(values_.next());
      const Value members = values_.next();
      if (members.kind != Kind::map && members.kind != Kind::list)
        values_.fail("an array in pieces without a list of them");
      for (std::uint64_t k = 0; k < members.length; ++k) {
        if (members.kind == Kind::map && values_.text(values_.next()) != std::to_string(k))
          values_.fail("pieces of an array out of order");
        const Value value = values_.next();
        if (key == "shape" && value.kind == Kind::number) {
          dimension(entry.shape, value.number);
        } else if (key == "chunks" && value.kind == Kind::extension && value.number == kArrayExtension) {
          if (!allowance_.take(2 * sizeof(FlaxArray))) values_.fail(kTooManyTensors);
          entry.parts.push_back(array(value));
        } else {
          values_.fail("an array in pieces with an unknown member");
        }
      }
    }
    add(std::move(entry));
  }

  void dimension(std::vector<std::int64_t>& shape, std::uint64_t length) const {
    if (shape.size() == kMaxRank) values_.fail("an array with too many dimensions");
    shape.push_back(static_cast<std::int64_t>(length));
  }

  /// Reads an array from an extension: its shape, the name of its type and its bytes.
  FlaxArray array(const Value& extension) {
    const std::uint64_t end = values_.at();
    values_.go_to(extension.offset);
    FlaxArray array;
    const Value whole = values_.next();
    const Value shape = values_.next();
    if (whole.kind != Kind::list || whole.length != 3 || shape.kind != Kind::list)
      values_.fail("an extension that is not an array");
    for (std::uint64_t i = 0; i < shape.length; ++i) {
      const Value length = values_.next();
      if (length.kind != Kind::number) values_.fail("an array without a shape");
      dimension(array.shape, length.number);
    }
    const Value type = values_.next();
    constexpr std::uint64_t kMaxType = 64;
    if (type.length > kMaxType) values_.fail("an array whose type has too long a name");
    array.type = values_.text(type);
    const Value bytes = values_.next();
    // Older versions stored the elements as text.
    if ((bytes.kind != Kind::bytes && bytes.kind != Kind::text) || values_.at() != end)
      values_.fail("an array without elements");
    array.offset = bytes.offset;
    array.bytes = bytes.length;
    return array;
  }

  void add(FlaxEntry entry) {
    if (!allowance_.take_tensor(entry.name.size(), entry.shape.size())) values_.fail(kTooManyTensors);
    entries_.push_back(std::move(entry));
  }

  FlaxReader values_;
  MemoryAllowance allowance_;
  std::vector<FlaxEntry> entries_;
};

FlaxFile::FlaxFile(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {
  entries_ = Parser(*file_).run();
}

StoredTensor FlaxFile::read(const FlaxEntry& entry, const FlaxArray& array) const {
  const auto fail = [&](const std::string& reason) {
    throw FormatError(display(file_->name()), fmt::format("{}: {}", display(entry.name), reason));
  };
  StoredTensor tensor;
  const auto dtype = tensor::dtype_from_name(array.type);
  if (!dtype) fail(fmt::format("element type {} is not supported", display(array.type)));
  tensor.dtype = *dtype;
  tensor.shape = array.shape;
  const auto wanted = checked_size(array.shape, tensor::info(*dtype).size);
  if (!wanted) fail("a shape larger than memory can hold");
  if (*wanted != array.bytes) fail(fmt::format("{} bytes for elements that need {}", array.bytes, *wanted));
  tensor.strides = row_major_strides(tensor.shape);
  tensor.storage = slice_source(file_, array.offset, array.bytes);
  return tensor;
}

StoredTensor FlaxFile::tensor(std::size_t index) const {
  const FlaxEntry& entry = entries_.at(index);
  if (entry.parts.size() == 1 && entry.parts.front().shape == entry.shape)
    return read(entry, entry.parts.front());
  std::vector<StoredTensor> parts;
  for (const FlaxArray& part : entry.parts) parts.push_back(read(entry, part));
  StoredTensor tensor = concatenate(parts, 0);
  // Each piece has one axis.
  std::int64_t wanted = 1;
  bool fits = tensor.shape.size() == 1;
  for (const std::int64_t length : entry.shape)
    fits = fits && length > 0 && !__builtin_mul_overflow(wanted, length, &wanted);
  if (!fits || wanted != tensor.numel()) {
    throw FormatError(display(file_->name()),
                      fmt::format("{}: its pieces do not make its shape", display(entry.name)));
  }
  tensor.shape = entry.shape;
  tensor.strides = row_major_strides(tensor.shape);
  return tensor;
}

bool looks_like_flax(const ByteSource& file) {
  if (file.size() == 0) return false;
  try {
    FlaxReader values(file);
    for (int depth = 0; depth < kMostFlaxDepth; ++depth) {
      const FlaxReader::FlaxValue value = values.next();
      if (value.kind == FlaxReader::FlaxKind::extension) return value.number == kArrayExtension;
      if (value.kind != FlaxReader::FlaxKind::map || value.length == 0) return false;
      if (values.text(values.next()) == kChunked) return true;
    }
    return false;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace msprobe::formats
