// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::uint64_t kLengthSize = 8;

struct TypeCode {
  std::string_view code;
  std::uint64_t bits;
  std::optional<DType> dtype;  // nothing: a known type whose elements are not whole bytes
};

constexpr std::array<TypeCode, 22> kTypeCodes = {{
    {"BOOL", 8, DType::boolean},
    {"U8", 8, DType::uint8},
    {"I8", 8, DType::int8},
    {"U16", 16, DType::uint16},
    {"I16", 16, DType::int16},
    {"U32", 32, DType::uint32},
    {"I32", 32, DType::int32},
    {"U64", 64, DType::uint64},
    {"I64", 64, DType::int64},
    {"F16", 16, DType::float16},
    {"BF16", 16, DType::bfloat16},
    {"F32", 32, DType::float32},
    {"F64", 64, DType::float64},
    {"F8_E4M3", 8, DType::float8_e4m3fn},
    {"F8_E5M2", 8, DType::float8_e5m2},
    {"F8_E4M3FNUZ", 8, DType::float8_e4m3fnuz},
    {"F8_E5M2FNUZ", 8, DType::float8_e5m2fnuz},
    {"F8_E8M0", 8, DType::float8_e8m0fnu},
    {"C64", 64, DType::complex64},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
}};

const TypeCode* type_of(std::string_view code) {
  const auto found =
      std::ranges::find_if(kTypeCodes, [&](const TypeCode& known) { return known.code == code; });
  return found == kTypeCodes.end() ? nullptr : &*found;
}

std::uint64_t header_length(const ByteSource& file) {
  std::array<std::byte, kLengthSize> raw{};
  file.read_at(0, raw);
  return load_le<std::uint64_t>(raw.data());
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  const auto found =
      std::ranges::find_if(kTypeCodes, [&](const TypeCode& known) { return known.dtype == dtype; });
  return found == kTypeCodes.end() ? std::string_view() : found->code;
}

// Collects the header's content during parsing. A header has only three levels, so the handler does not
// recurse.
class SafetensorsFile::HeaderHandler {
 public:
  explicit HeaderHandler(SafetensorsFile& file) : file_(file) {}

  const std::string& reason() const { return reason_; }

  bool null() { return fail("an unexpected null"); }
  bool boolean(bool) { return fail("an unexpected true or false"); }
  bool number_float(double, const std::string&) { return fail("a number that is not an integer"); }
  bool binary(nlohmann::json::binary_t&) { return fail("binary data"); }
  bool number_integer(std::int64_t) { return fail("a negative number"); }

  bool number_unsigned(std::uint64_t value) {
    if (depth_ != 3) return fail("an unexpected number");
    if (field_ == HeaderField::shape) {
      if (value > INT64_MAX) return fail("an axis with more elements than memory can hold");
      if (entry_.shape.size() == kMaxRank) return fail(fmt::format("more than {} dimensions", kMaxRank));
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (offsets_ == 2) return fail("more than two offsets");
    (offsets_++ == 0 ? entry_.begin : entry_.end) = value;
    return true;
  }

  bool string(std::string& value) {
    if (depth_ != 2) return fail("unexpected text");
    if (in_metadata_) {
      file_.metadata_.back().second = std::move(value);
      return true;
    }
    if (field_ != HeaderField::dtype) return fail("text instead of a list");
    entry_.dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) {
    if (depth_ == 2) return fail("an object inside a tensor's");
    if (depth_ == 3) return fail("an object inside a list");
    ++depth_;
    if (depth_ == 2 && !in_metadata_) {
      std::string name = std::move(entry_.name);
      entry_ = SafetensorsEntry{};
      entry_.name = std::move(name);
      has_.fill(false);
      offsets_ = 0;
    }
    return true;
  }

  bool key(std::string& name) {
    if (depth_ == 1) {
      in_metadata_ = name == "__metadata__";
      if (in_metadata_ && had_metadata_) return fail("__metadata__ twice");
      had_metadata_ = had_metadata_ || in_metadata_;
      entry_.name = std::move(name);
      return true;
    }
    if (in_metadata_) {
      file_.metadata_.emplace_back(std::move(name), "");
      return true;
    }
    static constexpr std::array<std::string_view, 3> kFields = {"dtype", "shape", "data_offsets"};
    const auto found = std::find(kFields.begin(), kFields.end(), name);
    if (found == kFields.end()) return fail(fmt::format("unknown key {}", display(name)));
    const auto index = static_cast<std::size_t>(found - kFields.begin());
    if (has_[index]) return fail(fmt::format("{} twice", name));
    has_[index] = true;
    field_ = static_cast<HeaderField>(index);
    return true;
  }

  bool end_object() {
    --depth_;
    if (depth_ == 1 && !in_metadata_) {
      if (!std::ranges::all_of(has_, [](bool has) { return has; }) || offsets_ != 2) {
        return fail("dtype, shape or data_offsets missing");
      }
      file_.entries_.push_back(std::move(entry_));
    }
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_metadata_ || field_ == HeaderField::dtype) return fail("an unexpected list");
    ++depth_;
    return true;
  }

  bool end_array() {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail(fmt::format("broken JSON at byte {}", kLengthSize + position));
  }

 private:
  enum class HeaderField { dtype, shape, offsets };

  bool fail(std::string what) {
    if (reason_.empty()) {
      reason_ = "its header is refused: " + std::move(what);
      if (depth_ >= 2) reason_ += " (" + (in_metadata_ ? "__metadata__" : display(entry_.name)) + ")";
    }
    return false;
  }

  SafetensorsFile& file_;
  std::string reason_;
  int depth_ = 0;  // 1: names; 2: one tensor or the metadata; 3: a list of a tensor
  bool in_metadata_ = false;
  bool had_metadata_ = false;
  SafetensorsEntry entry_;
  std::array<bool, 3> has_{};
  HeaderField field_ = HeaderField::dtype;
  int offsets_ = 0;
};

SafetensorsFile::SafetensorsFile(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {
  if (file_->size() <= kLengthSize) fail("not a safetensors file: too short");
  const std::uint64_t length = header_length(*file_);
  if (length > file_->size() - kLengthSize) {
    fail(fmt::format("its header of {} bytes is longer than the file", length));
  }
  if (length > kMaxHeader) fail(fmt::format("refused: a header of {} bytes", length));
  data_begin_ = kLengthSize + length;
  const std::string header = read_text(*file_, kLengthSize, length);
  // JSON parsers disagree about characters before the brace, so msprobe refuses them.
  if (!header.starts_with('{')) fail("not a safetensors file: its header does not begin with {");
  HeaderHandler handler(*this);
  if (!nlohmann::json::sax_parse(header, &handler)) fail(handler.reason());
  check_names();
  for (const SafetensorsEntry& entry : entries_) check_size(entry);
  check_places();
}

void SafetensorsFile::fail(const std::string& reason) const {
  throw FormatError(display(file_->name()), reason);
}

void SafetensorsFile::check_names() const {
  std::vector<std::string_view> names;
  std::vector<std::size_t> hashes;
  const auto refuse_twins = [&] {
    // Sorting hashes takes a fraction of the time of sorting texts.
    hashes.clear();
    for (const std::string_view name : names) hashes.push_back(std::hash<std::string_view>()(name));
    std::ranges::sort(hashes);
    if (std::adjacent_find(hashes.begin(), hashes.end()) == hashes.end()) return;
    std::ranges::sort(names);
    const auto twin = std::adjacent_find(names.begin(), names.end());
    if (twin != names.end()) fail(fmt::format("refused: duplicate name {}", display(*twin)));
  };
  names.reserve(entries_.size());
  for (const SafetensorsEntry& entry : entries_) names.push_back(entry.name);
  refuse_twins();
  names.clear();
  for (const auto& [key, value] : metadata_) names.push_back(key);
  refuse_twins();
}

// Checks that the offsets match shape and type. For an unknown type only the place is checked.
void SafetensorsFile::check_size(const SafetensorsEntry& entry) const {
  if (entry.begin > entry.end) fail(fmt::format("{}: it ends before it begins", display(entry.name)));
  const TypeCode* type = type_of(entry.dtype);
  const auto bits = checked_size(entry.shape, type == nullptr ? 8 : type->bits);
  if (!bits) fail(fmt::format("{}: more elements than memory can hold", display(entry.name)));
  if (type != nullptr && (*bits % 8 != 0 || entry.end - entry.begin != *bits / 8)) {
    fail(fmt::format("{}: its shape needs {} bytes, but its offsets give {}", display(entry.name), *bits / 8,
                     entry.end - entry.begin));
  }
}

void SafetensorsFile::check_places() {
  std::ranges::stable_sort(entries_, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t position = 0;
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.begin != position) {
      fail(fmt::format("refused: {} {} the data before it", display(entry.name),
                       entry.begin < position ? "overlaps" : "leaves a gap after"));
    }
    position = entry.end;
  }
  const std::uint64_t data = file_->size() - data_begin_;
  if (position > data)
    fail(fmt::format("truncated: {} of {} bytes: it was not downloaded or written to the end", file_->size(),
                     data_begin_ + position));
  if (position < data) fail(fmt::format("refused: {} bytes follow its last tensor", data - position));
}

StoredTensor SafetensorsFile::tensor(std::size_t index) const {
  const SafetensorsEntry& entry = entries_.at(index);
  const TypeCode* type = type_of(entry.dtype);
  if (type == nullptr || !type->dtype) {
    fail(fmt::format("{}: element type {} is not supported{}", display(entry.name), display(entry.dtype),
                     type == nullptr ? "" : " (its elements are not whole bytes)"));
  }
  StoredTensor result;
  result.dtype = *type->dtype;
  result.shape = entry.shape;
  result.strides = row_major_strides(entry.shape);
  result.storage = slice_source(file_, data_begin_ + entry.begin, entry.end - entry.begin);
  return result;
}

bool ends_within_header(const ByteSource& file) {
  if (file.size() <= kLengthSize + 1) return false;
  std::array<std::byte, 2> start{};
  file.read_at(kLengthSize, start);
  const std::uint64_t length = header_length(file);
  return start[0] == std::byte{'{'} && start[1] == std::byte{'"'} && length > file.size() - kLengthSize &&
         length <= SafetensorsFile::kMaxHeader;
}

bool looks_like_safetensors(const ByteSource& file) {
  if (file.size() <= kLengthSize) return false;
  std::byte brace{};
  file.read_at(kLengthSize, std::span(&brace, 1));
  return brace == std::byte{'{'} && header_length(file) <= file.size() - kLengthSize;
}

}  // namespace msprobe::formats
