// SPDX-License-Identifier: Apache-2.0
#include "formats/adump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "formats/adump_header.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::uint64_t kMaxDumpHeader = std::uint64_t{64} << 20;
constexpr std::uint64_t kLengthField = 8;
constexpr std::int64_t kUndefined = 0;
constexpr std::int64_t kUint1 = 29;

std::optional<DType> dtype_of(std::int64_t code) {
  constexpr std::array kPlain = {DType::float32, DType::float16, DType::int8,    DType::uint8,
                                 DType::int16,   DType::uint16,  DType::int32,   DType::int64,
                                 DType::uint32,  DType::uint64,  DType::boolean, DType::float64};
  if (code >= 1 && code <= static_cast<std::int64_t>(kPlain.size()))
    return kPlain[static_cast<std::size_t>(code - 1)];
  switch (code) {
    case kUndefined:
      return DType::int8;
    case 16:
      return DType::complex64;
    case 17:
      return DType::complex128;
    case 23:
      return DType::int64;  // a resource: a handle
    case 27:
      return DType::bfloat16;
    case kUint1:
      return DType::uint8;  // one a bit
    case 33:
      return DType::hifloat8;
    case 34:
      return DType::float8_e5m2;
    case 35:
      return DType::float8_e4m3fn;
    default:
      return std::nullopt;
  }
}

/// The bits of another source, one byte each, high bit first.
class BitSource final : public ByteSource {
 public:
  BitSource(std::shared_ptr<const ByteSource> packed, std::uint64_t count)
      : packed_(std::move(packed)), count_(count) {}
  std::uint64_t size() const override { return count_; }
  const std::string& name() const override { return packed_->name(); }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), count_, name());
    std::array<std::byte, 4096> bytes;
    while (!out.empty()) {
      const std::uint64_t first = offset / 8;
      const std::uint64_t needed = (offset % 8 + out.size() + 7) / 8;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(needed, bytes.size()));
      packed_->read_at(first, std::span(bytes).first(count));
      const std::size_t skip = offset % 8;
      const std::size_t bits = std::min(out.size(), count * 8 - skip);
      for (std::size_t i = 0; i < bits; ++i) {
        const std::size_t bit = skip + i;
        out[i] = (bytes[bit / 8] >> (7 - bit % 8)) & std::byte{1};
      }
      out = out.subspan(bits);
      offset += bits;
    }
  }

 private:
  std::shared_ptr<const ByteSource> packed_;
  std::uint64_t count_;
};

/// Computes the place of every item after the header.
void place_items(AdumpFile& dump, std::uint64_t begin) {
  std::uint64_t left = dump.file->size() - begin;
  for (AdumpItem& item : dump.items) {
    if (item.size > left) {
      fail_adump(dump, fmt::format("truncated: its header says {} bytes, but {} are left", item.size, left));
    }
    item.offset = begin;
    begin += item.size;
    left -= item.size;
  }
  if (dump.nano && left != 0)
    fail_adump(dump, fmt::format("its header (nano form) describes {} of its {} bytes", begin, begin + left));
}

}  // namespace

void fail_adump(const AdumpFile& dump, const std::string& reason) {
  throw FormatError(display(dump.file->name()), reason);
}

AdumpItem& add_item(AdumpFile& dump, AdumpRole role) {
  if (dump.items.size() == kMaxAdumpItems)
    fail_adump(dump, fmt::format("refused: more than {} tensors", kMaxAdumpItems));
  AdumpItem& item = dump.items.emplace_back();
  item.role = role;
  return item;
}

void number_items(AdumpFile& dump) {
  std::array<std::size_t, 4> counts{};
  for (AdumpItem& item : dump.items) item.index = counts.at(static_cast<std::size_t>(item.role))++;
}

void add_dimension(const AdumpFile& dump, std::vector<std::int64_t>& shape, std::uint64_t length) {
  if (shape.size() == kMaxAdumpRank)
    fail_adump(dump, fmt::format("refused: a tensor with more than {} dimensions", kMaxAdumpRank));
  if (length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    fail_adump(dump, "a tensor of negative size");
  shape.push_back(static_cast<std::int64_t>(length));
}

AdumpFile open_adump(std::shared_ptr<const ByteSource> file) {
  AdumpFile dump;
  dump.file = std::move(file);
  const std::uint64_t size = dump.file->size();
  if (size == 0) fail_adump(dump, "an empty file");
  if (size <= kLengthField) fail_adump(dump, fmt::format("not a kernel dump: only {} bytes", size));
  std::array<std::byte, kLengthField> raw{};
  dump.file->read_at(0, raw);
  const auto length = load_le<std::uint64_t>(raw.data());
  if (length > size - kLengthField) {
    fail_adump(dump, fmt::format("not a kernel dump: a header of {} bytes in a file of {}", length, size));
  }
  if (length > kMaxDumpHeader) fail_adump(dump, fmt::format("refused: a header of {} bytes", length));
  std::array<std::byte, sizeof kAdumpMagic> magic{};
  if (length >= magic.size()) dump.file->read_at(kLengthField, magic);
  dump.nano = load_le<std::uint32_t>(magic.data()) == kAdumpMagic;
  if (dump.nano) {
    read_nano_header(read_text(*dump.file, kLengthField, length), dump);
  } else {
    read_protobuf_header(dump, kLengthField, length);
  }
  place_items(dump, kLengthField + length);
  return dump;
}

StoredTensor adump_tensor(const AdumpFile& dump, const AdumpItem& item) {
  const auto fail = [&](const std::string& reason) { fail_adump(dump, reason); };
  const auto dtype = dtype_of(item.type);
  if (!dtype) fail(fmt::format("elements of {} are not supported", adump_type_name(item.type)));
  auto data = slice_source(dump.file, item.offset, item.size);
  StoredTensor result;
  result.dtype = *dtype;
  result.shape = item.shape;
  if (item.type == kUndefined) result.shape = {static_cast<std::int64_t>(item.size)};
  const auto checked = checked_size(result.shape, tensor::info(*dtype).size);
  if (!checked) fail("more elements than memory can hold");
  const std::uint64_t wanted = *checked;
  const std::uint64_t packed = item.type == kUint1 ? wanted / 8 + (wanted % 8 != 0 ? 1 : 0) : wanted;
  if (packed > item.size) {
    fail(fmt::format("its shape [{}] needs {} bytes, but it has {}", fmt::join(item.shape, ", "), packed,
                     item.size));
  }
  result.strides = row_major_strides(result.shape);
  result.storage = item.type == kUint1 ? std::make_shared<BitSource>(std::move(data), wanted)
                                       : slice_source(std::move(data), 0, wanted);
  return result;
}

std::string adump_type_name(std::int64_t code) {
  if (code == kUndefined) return "undefined type";
  if (code == kUint1) return "uint1";
  if (code == 13) return "string";
  if (code == 23) return "resource";
  if (const auto dtype = dtype_of(code)) return std::string(tensor::info(*dtype).name);
  return code < 0 ? fmt::format("type {}", -1 - code) : fmt::format("type {}", code);
}

}  // namespace msprobe::formats
