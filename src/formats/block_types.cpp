// SPDX-License-Identifier: Apache-2.0
// The blocks are those of ggml (ggml-common.h and ggml-quants.c of https://github.com/ggml-org/ggml). The OCP
// Microscaling Formats specification 1.0 also defines MXFP4.
#include "formats/block_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::formats {
namespace {

constexpr std::array<BlockLayout, 13> kLayouts = {{
    {32, 18},
    {32, 20},
    {32, 22},
    {32, 24},
    {32, 34},
    {256, 84},
    {256, 110},
    {256, 144},
    {256, 176},
    {256, 210},
    {32, 18},
    {256, 136},
    {32, 17},
}};

/// The sixteen values of a four-bit code, in steps, and for each the larger distance to a neighbour.
struct CodeTable {
  std::array<std::int8_t, 16> values;
  std::array<std::int8_t, 16> gaps;
};
constexpr CodeTable kNonLinear = {{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
                                  {23, 23, 21, 18, 16, 14, 13, 12, 12, 12, 13, 15, 16, 20, 24, 24}};
// Twice the values of E2M1; the scale has the half of it.
constexpr CodeTable kFloat4 = {{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12},
                               {1, 1, 1, 1, 2, 2, 4, 4, 1, 1, 1, 1, 2, 2, 4, 4}};

/// Elements that have their scale in common: each is `scale * code - offset`.
struct ScaleGroup {
  float scale = 0;
  float offset = 0;
  float scale_error = 0;  // by how much they may have been rounded when they were stored
  float offset_error = 0;
};

constexpr std::size_t kMostGroups = 16;

struct Unpacked {
  std::array<std::int8_t, kMostBlockElements> codes{};
  std::array<ScaleGroup, kMostGroups> groups{};
  std::size_t group_size = 32;
  const CodeTable* table = nullptr;  // codes are places in it
};

/// The bytes of a block, one field after the other.
class BlockFields {
 public:
  explicit BlockFields(std::span<const std::byte> block)
      : at_(reinterpret_cast<const std::uint8_t*>(block.data())) {}
  const std::uint8_t* take(std::size_t count) { return std::exchange(at_, at_ + count); }
  float half() {
    float value = 0;
    tensor::to_float(tensor::DType::float16, std::as_bytes(std::span(take(2), 2)), std::span(&value, 1));
    return value;
  }

 private:
  const std::uint8_t* at_;
};

/// A scale of 0 may have been one that is too small for float16.
float error_of_half(float value) {
  constexpr float kRelative = 0x1p-11F;
  constexpr float kLeast = 0x1p-25F;
  return std::max(std::abs(value) * kRelative, kLeast);
}

/// A group whose scale and offset are multiples of the block's.
ScaleGroup group_of(float scale, int times, float offset = 0, int offset_times = 0) {
  const auto factor = static_cast<float>(times);
  const auto offset_factor = static_cast<float>(offset_times);
  return {scale * factor, offset * offset_factor, error_of_half(scale) * std::abs(factor),
          error_of_half(offset) * offset_factor};
}

std::int8_t code(int value) {
  return static_cast<std::int8_t>(value);
}

// The low halves of all bytes, then the high ones; the fifth bits by themselves.
void unpack_small(BlockFields fields, bool has_offset, bool has_fifth, int zero, Unpacked& out) {
  const float scale = fields.half();
  // Without one it is 0 and not -0, which would take the sign off a negative zero.
  out.groups[0] = group_of(scale, 1, has_offset ? -fields.half() : 0, has_offset ? 1 : 0);
  std::uint32_t fifth = 0;
  if (has_fifth) fifth = load_le<std::uint32_t>(std::as_bytes(std::span(fields.take(4), 4)).data());
  const std::uint8_t* packed = fields.take(16);
  for (unsigned i = 0; i < 16; ++i) {
    const int low = (packed[i] & 0xF) | static_cast<int>((fifth >> i & 1) << 4);
    const int high = (packed[i] >> 4) | static_cast<int>((fifth >> (i + 16) & 1) << 4);
    out.codes[i] = code(low - zero);
    out.codes[i + 16] = code(high - zero);
  }
}

void unpack_q8_0(BlockFields fields, Unpacked& out) {
  out.groups[0] = group_of(fields.half(), 1);
  std::memcpy(out.codes.data(), fields.take(32), 32);
}

/// Unpacks codes of two bits, four in each byte: a block of 128 elements has those in the lowest bits first.
int two_bits(const std::uint8_t* packed, unsigned element) {
  return packed[element / 128 * 32 + element % 32] >> (element % 128 / 32 * 2) & 3;
}

void unpack_q2_k(BlockFields fields, Unpacked& out) {
  const std::uint8_t* scales = fields.take(16);
  const std::uint8_t* packed = fields.take(64);
  const float scale = fields.half();
  const float offset = fields.half();
  out.group_size = 16;
  for (unsigned i = 0; i < 16; ++i) out.groups[i] = group_of(scale, scales[i] & 0xF, offset, scales[i] >> 4);
  for (unsigned i = 0; i < 256; ++i) out.codes[i] = code(two_bits(packed, i));
}

void unpack_q3_k(BlockFields fields, Unpacked& out) {
  const std::uint8_t* third = fields.take(32);
  const std::uint8_t* packed = fields.take(64);
  const std::uint8_t* scales = fields.take(12);
  const float scale = fields.half();
  out.group_size = 16;
  for (unsigned i = 0; i < 16; ++i) {
    const int low = i < 8 ? scales[i] & 0xF : scales[i - 8] >> 4;
    const int high = scales[8 + i % 4] >> (i / 4 * 2) & 3;
    out.groups[i] = group_of(scale, (low | high << 4) - 32);
  }
  for (unsigned i = 0; i < 256; ++i) {
    const int above = third[i % 32] >> (i / 32) & 1;
    out.codes[i] = code(two_bits(packed, i) - (above == 1 ? 0 : 4));
  }
}

/// Eight scales and eight offsets of six bits each.
void unpack_scales_k(const std::uint8_t* packed, float scale, float offset, Unpacked& out) {
  for (unsigned i = 0; i < 4; ++i) {
    out.groups[i] = group_of(scale, packed[i] & 63, offset, packed[i + 4] & 63);
    const int times = (packed[i + 8] & 0xF) | packed[i] >> 6 << 4;
    const int offset_times = packed[i + 8] >> 4 | packed[i + 4] >> 6 << 4;
    out.groups[i + 4] = group_of(scale, times, offset, offset_times);
  }
}

void unpack_q45_k(BlockFields fields, bool has_fifth, Unpacked& out) {
  const float scale = fields.half();
  const float offset = fields.half();
  unpack_scales_k(fields.take(12), scale, offset, out);
  const std::uint8_t* fifth = has_fifth ? fields.take(32) : nullptr;
  const std::uint8_t* packed = fields.take(128);
  for (unsigned group = 0; group < 8; ++group) {
    for (unsigned i = 0; i < 32; ++i) {
      const int low = packed[group / 2 * 32 + i] >> (group % 2 * 4) & 0xF;
      const int high = has_fifth ? (fifth[i] >> group & 1) << 4 : 0;
      out.codes[group * 32 + i] = code(low | high);
    }
  }
}

void unpack_q6_k(BlockFields fields, Unpacked& out) {
  const std::uint8_t* low = fields.take(128);
  const std::uint8_t* high = fields.take(64);
  const std::uint8_t* scales = fields.take(16);
  const float scale = fields.half();
  out.group_size = 16;
  for (unsigned i = 0; i < 16; ++i) out.groups[i] = group_of(scale, static_cast<std::int8_t>(scales[i]));
  for (unsigned i = 0; i < 256; ++i) {
    const int four = low[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 0xF;
    out.codes[i] = code((four | two_bits(high, i) << 4) - 32);
  }
}

void unpack_iq4_nl(BlockFields fields, Unpacked& out) {
  unpack_small(fields, false, false, 0, out);
  out.table = &kNonLinear;
}

void unpack_iq4_xs(BlockFields fields, Unpacked& out) {
  const float scale = fields.half();
  const auto high = load_le<std::uint16_t>(std::as_bytes(std::span(fields.take(2), 2)).data());
  const std::uint8_t* low = fields.take(4);
  const std::uint8_t* packed = fields.take(128);
  out.table = &kNonLinear;
  for (unsigned group = 0; group < 8; ++group) {
    const int four = low[group / 2] >> (group % 2 * 4) & 0xF;
    const int two = high >> (group * 2) & 3;
    out.groups[group] = group_of(scale, (four | two << 4) - 32);
    for (unsigned i = 0; i < 16; ++i) {
      out.codes[group * 32 + i] = code(packed[group * 16 + i] & 0xF);
      out.codes[group * 32 + 16 + i] = code(packed[group * 16 + i] >> 4);
    }
  }
}

void unpack_mxfp4(BlockFields fields, Unpacked& out) {
  // A power of two, so nothing was rounded.
  constexpr int kBias = 127;
  out.groups[0].scale = std::ldexp(0.5F, *fields.take(1) - kBias);
  const std::uint8_t* packed = fields.take(16);
  for (unsigned i = 0; i < 16; ++i) {
    out.codes[i] = code(packed[i] & 0xF);
    out.codes[i + 16] = code(packed[i] >> 4);
  }
  out.table = &kFloat4;
}

void unpack(BlockType type, std::span<const std::byte> block, Unpacked& out) {
  const BlockFields fields(block);
  switch (type) {
    case BlockType::q4_0:
      return unpack_small(fields, false, false, 8, out);
    case BlockType::q4_1:
      return unpack_small(fields, true, false, 0, out);
    case BlockType::q5_0:
      return unpack_small(fields, false, true, 16, out);
    case BlockType::q5_1:
      return unpack_small(fields, true, true, 0, out);
    case BlockType::q8_0:
      return unpack_q8_0(fields, out);
    case BlockType::q2_k:
      return unpack_q2_k(fields, out);
    case BlockType::q3_k:
      return unpack_q3_k(fields, out);
    case BlockType::q4_k:
      return unpack_q45_k(fields, false, out);
    case BlockType::q5_k:
      return unpack_q45_k(fields, true, out);
    case BlockType::q6_k:
      return unpack_q6_k(fields, out);
    case BlockType::iq4_nl:
      return unpack_iq4_nl(fields, out);
    case BlockType::iq4_xs:
      return unpack_iq4_xs(fields, out);
    case BlockType::mxfp4:
      return unpack_mxfp4(fields, out);
  }
}

/// Packed blocks as float32, a piece of them at a time.
class UnpackedSource final : public ByteSource {
 public:
  UnpackedSource(std::shared_ptr<const ByteSource> packed, BlockType type, BlockContent content)
      : packed_(std::move(packed)), type_(type), content_(content), layout_(layout_of(type)) {
    const std::uint64_t blocks = packed_->size() / layout_.bytes;
    if (packed_->size() % layout_.bytes != 0) throw FormatError(display(name()), "its last block is cut off");
    if (blocks > std::numeric_limits<std::int64_t>::max() / (layout_.elements * sizeof(float)))
      throw FormatError(display(name()), "more elements than memory can hold");
    size_ = blocks * layout_.elements * sizeof(float);
  }

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return packed_->name(); }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size_, name());
    const std::size_t block_size = layout_.elements * sizeof(float);
    std::vector<std::byte> packed;
    std::array<float, kMostBlockElements> values{};
    while (!out.empty()) {
      const std::uint64_t first = offset / block_size;
      auto inside = static_cast<std::size_t>(offset % block_size);
      const std::size_t blocks = std::min((inside + out.size() + block_size - 1) / block_size, kAtOnce);
      packed.resize(blocks * layout_.bytes);
      packed_->read_at(first * layout_.bytes, packed);
      for (std::size_t i = 0; i < blocks; ++i) {
        unpack_block(type_, content_, std::span(packed).subspan(i * layout_.bytes, layout_.bytes),
                     std::span(values).first(layout_.elements));
        const std::size_t count = std::min(block_size - inside, out.size());
        std::memcpy(out.data(), std::as_bytes(std::span(values)).data() + inside, count);
        out = out.subspan(count);
        offset += count;
        inside = 0;
      }
    }
  }

 private:
  static constexpr std::size_t kAtOnce = 256;

  std::shared_ptr<const ByteSource> packed_;
  BlockType type_;
  BlockContent content_;
  BlockLayout layout_;
  std::uint64_t size_ = 0;
};

}  // namespace

BlockLayout layout_of(BlockType type) {
  return kLayouts[static_cast<std::size_t>(type)];
}

void unpack_block(BlockType type, BlockContent content, std::span<const std::byte> block,
                  std::span<float> out) {
  Unpacked unpacked;
  unpack(type, block, unpacked);
  for (std::size_t begin = 0; begin < out.size(); begin += unpacked.group_size) {
    const ScaleGroup& group = unpacked.groups[begin / unpacked.group_size];
    const std::size_t end = std::min(begin + unpacked.group_size, out.size());
    for (std::size_t i = begin; i < end; ++i) {
      const auto place = static_cast<std::size_t>(static_cast<std::uint8_t>(unpacked.codes[i]));
      const auto steps =
          static_cast<float>(unpacked.table == nullptr ? unpacked.codes[i] : unpacked.table->values[place]);
      if (content == BlockContent::values) {
        out[i] = group.scale * steps - group.offset;
        continue;
      }
      const float gap = unpacked.table == nullptr ? 1.0F : static_cast<float>(unpacked.table->gaps[place]);
      const float step = std::abs(group.scale) + (group.scale == 0 ? group.scale_error : 0);
      out[i] = step * gap / 2 + group.scale_error * std::abs(steps) + group.offset_error;
    }
  }
}

std::shared_ptr<const ByteSource> unpacked_source(std::shared_ptr<const ByteSource> packed, BlockType type,
                                                  BlockContent content) {
  return std::make_shared<const UnpackedSource>(std::move(packed), type, content);
}

}  // namespace msprobe::formats
