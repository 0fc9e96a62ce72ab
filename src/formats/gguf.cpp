// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "formats/block_types.hpp"
#include "formats/limits.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr std::string_view kMark = "GGUF";
constexpr std::uint64_t kMaxShown = 1024;  // bytes of a metadata text that are kept
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 24;
constexpr int kMaxListDepth = 8;

struct GgufType {
  std::uint32_t id;
  std::string_view name;
  std::optional<tensor::DType> dtype;  // of a type that is stored unpacked
  std::optional<BlockType> block;
  // The size of a block of a type without a reader, to check that the last tensor ends inside the file.
  BlockLayout layout = {};
};

using tensor::DType;
constexpr std::array kGgufTypes = {
    GgufType{0, "F32", DType::float32, {}},        GgufType{1, "F16", DType::float16, {}},
    GgufType{2, "Q4_0", {}, BlockType::q4_0},      GgufType{3, "Q4_1", {}, BlockType::q4_1},
    GgufType{6, "Q5_0", {}, BlockType::q5_0},      GgufType{7, "Q5_1", {}, BlockType::q5_1},
    GgufType{8, "Q8_0", {}, BlockType::q8_0},      GgufType{9, "Q8_1", {}, {}, {32, 36}},
    GgufType{10, "Q2_K", {}, BlockType::q2_k},     GgufType{11, "Q3_K", {}, BlockType::q3_k},
    GgufType{12, "Q4_K", {}, BlockType::q4_k},     GgufType{13, "Q5_K", {}, BlockType::q5_k},
    GgufType{14, "Q6_K", {}, BlockType::q6_k},     GgufType{15, "Q8_K", {}, {}, {256, 292}},
    GgufType{16, "IQ2_XXS", {}, {}, {256, 66}},    GgufType{17, "IQ2_XS", {}, {}, {256, 74}},
    GgufType{18, "IQ3_XXS", {}, {}, {256, 98}},    GgufType{19, "IQ1_S", {}, {}, {256, 50}},
    GgufType{20, "IQ4_NL", {}, BlockType::iq4_nl}, GgufType{21, "IQ3_S", {}, {}, {256, 110}},
    GgufType{22, "IQ2_S", {}, {}, {256, 82}},      GgufType{23, "IQ4_XS", {}, BlockType::iq4_xs},
    GgufType{24, "I8", DType::int8, {}},           GgufType{25, "I16", DType::int16, {}},
    GgufType{26, "I32", DType::int32, {}},         GgufType{27, "I64", DType::int64, {}},
    GgufType{28, "F64", DType::float64, {}},       GgufType{29, "IQ1_M", {}, {}, {256, 56}},
    GgufType{30, "BF16", DType::bfloat16, {}},     GgufType{34, "TQ1_0", {}, {}, {256, 54}},
    GgufType{35, "TQ2_0", {}, {}, {256, 66}},      GgufType{39, "MXFP4", {}, BlockType::mxfp4},
    GgufType{40, "NVFP4", {}, {}, {64, 36}},
};

const GgufType* type_of(std::uint32_t id) {
  const auto* found = std::ranges::find_if(kGgufTypes, [&](const GgufType& type) { return type.id == id; });
  return found == kGgufTypes.end() ? nullptr : &*found;
}

BlockLayout layout_of_type(const GgufType& type) {
  if (type.dtype) return {1, tensor::info(*type.dtype).size};
  return type.block ? layout_of(*type.block) : type.layout;
}

/// The name of a general.file_type (llama_ftype of llama.cpp's llama.h).
std::string_view file_type_name(std::int64_t number) {
  constexpr std::array<std::string_view, 39> kNames = {
      "F32",    "F16",    "Q4_0",   "Q4_1",    "",       "",       "",       "Q8_0",   "Q5_0",  "Q5_1",
      "Q2_K",   "Q3_K_S", "Q3_K_M", "Q3_K_L",  "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS",
      "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS", "IQ1_S",  "IQ4_NL", "IQ3_S",  "IQ3_M",  "IQ2_S", "IQ2_M",
      "IQ4_XS", "IQ1_M",  "BF16",   "",        "",       "",       "TQ1_0",  "TQ2_0",  "MXFP4"};
  return number < 0 || number >= static_cast<std::int64_t>(kNames.size())
             ? std::string_view()
             : kNames[static_cast<std::size_t>(number)];
}

/// The kinds of metadata values, and their sizes in bytes; 0 for texts and lists.
constexpr std::array<std::uint64_t, 13> kValueSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::uint32_t kFloat32 = 6;
constexpr std::uint32_t kText = 8;
constexpr std::uint32_t kList = 9;
constexpr std::uint32_t kFloat64 = 12;

bool is_shown(std::string_view key) {
  return key.starts_with("general.") || key.ends_with(".attention.head_count") ||
         key.ends_with(".attention.head_count_kv");
}

}  // namespace

class GgufFile::Parser {
 public:
  explicit Parser(GgufFile& result)
      : result_(result), source_(result.file_), file_(*source_), allowance_(file_.size()) {}

  void run() {
    skip(kMark.size());
    const auto version = number<std::uint32_t>();
    // A version number in the other byte order has zeros in its low bytes.
    if (version != 0 && (version & 0xFFFF) == 0)
      fail("a GGUF file of a big-endian machine, which msprobe does not read");
    if (version != 2 && version != 3) fail(fmt::format("GGUF version {} is not supported", version));
    const auto tensors = number<std::uint64_t>();
    const auto values = number<std::uint64_t>();
    // The fewest bytes that a tensor's entry and a metadata value can take.
    constexpr std::uint64_t kLeastTensor = 24;
    constexpr std::uint64_t kLeastValue = 13;
    if (tensors > file_.size() / kLeastTensor || values > file_.size() / kLeastValue)
      fail("more tensors or metadata are announced than the file has room for");
    for (std::uint64_t i = 0; i < values; ++i) value();
    for (std::uint64_t i = 0; i < tensors; ++i) tensor();
    refuse_twins();
    place_tensors();
    finish_metadata();
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw FormatError(display(file_.name()), reason);
  }

  void skip(std::uint64_t count) {
    if (count > file_.size() - at_) fail("truncated: its header is longer than the file");
    at_ += count;
  }

  /// Returns the next bytes from a window over the file.
  const std::byte* take(std::size_t count) {
    const std::uint64_t begin = at_;
    skip(count);
    if (begin < window_begin_ || at_ > window_begin_ + window_.size()) {
      constexpr std::uint64_t kWindow = std::uint64_t{64} << 10;
      window_begin_ = begin;
      window_.resize(static_cast<std::size_t>(std::min(kWindow, file_.size() - begin)));
      file_.read_at(begin, window_);
    }
    return window_.data() + (begin - window_begin_);
  }
  template <typename T>
  T number() {
    return load_le<T>(take(sizeof(T)));
  }

  std::string name() {
    const auto length = number<std::uint64_t>();
    if (length > kMaxName) fail(fmt::format("refused: a name of {} bytes", length));
    return std::string(reinterpret_cast<const char*>(take(static_cast<std::size_t>(length))),
                       static_cast<std::size_t>(length));
  }

  void skip_list(int depth) {
    if (depth == kMaxListDepth) fail("refused: lists of lists in its metadata");
    const auto kind = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    if (kind >= kValueSizes.size()) fail(fmt::format("metadata of an unknown kind, {}", kind));
    const std::uint64_t size = kValueSizes[kind];
    // A text or list inside a list begins with its length, so each takes at least the size of a length.
    if (size == 0 && count > (file_.size() - at_) / sizeof(std::uint64_t))
      fail("truncated: a list in its metadata is longer than the file");
    if (size != 0) {
      std::uint64_t bytes = 0;
      if (__builtin_mul_overflow(count, size, &bytes))
        fail("truncated: a list in its metadata is longer than the file");
      return skip(bytes);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (kind == kText) {
        skip(number<std::uint64_t>());
      } else {
        skip_list(depth + 1);
      }
    }
  }

  void value() {
    std::string key = name();
    if (!allowance_.take(256 + 2 * key.size())) fail("refused: more metadata than a file of its size has");
    const auto kind = number<std::uint32_t>();
    if (kind >= kValueSizes.size()) fail(fmt::format("metadata of an unknown kind, {}", kind));
    if (kind == kList) return skip_list(0);
    if (kind == kText) return text(std::move(key));
    const std::byte* bytes = take(static_cast<std::size_t>(kValueSizes[kind]));
    const bool is_signed = kind == 1 || kind == 3 || kind == 5 || kind == 11;
    if (kind == kFloat32 || kind == kFloat64) {
      const double real = kind == kFloat32
                              ? static_cast<double>(std::bit_cast<float>(load_le<std::uint32_t>(bytes)))
                              : std::bit_cast<double>(load_le<std::uint64_t>(bytes));
      if (is_shown(key)) result_.metadata_.emplace_back(std::move(key), python_repr(real));
      return;
    }
    std::uint64_t bits = 0;
    for (std::uint64_t i = kValueSizes[kind]; i-- > 0;)
      bits = bits << 8 | std::to_integer<unsigned>(bytes[i]);
    const std::uint64_t unused = 64 - 8 * kValueSizes[kind];
    const auto whole =
        is_signed ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits);
    if (key == "general.alignment") {
      const auto wanted = static_cast<std::uint64_t>(whole);
      if (!std::has_single_bit(wanted) || wanted > kMaxAlignment)
        fail(fmt::format("an alignment of {} bytes", wanted));
      alignment_ = wanted;
    }
    if (is_shown(key)) {
      std::string shown = std::to_string(whole);
      if (key == "general.file_type" && !file_type_name(whole).empty())
        shown += fmt::format(" ({})", file_type_name(whole));
      result_.metadata_.emplace_back(key, std::move(shown));
    }
    result_.numbers_.emplace_back(std::move(key), whole);
  }

  void text(std::string key) {
    const auto length = number<std::uint64_t>();
    const std::uint64_t begin = at_;
    skip(length);
    const bool is_architecture = key == "general.architecture";
    if (is_architecture || is_shown(key)) {
      if (!allowance_.take(kMaxShown)) fail("refused: more metadata than a file of its size has");
      std::string shown = read_text(file_, begin, std::min(length, kMaxShown));
      if (is_architecture) result_.architecture_ = shown;
      result_.metadata_.emplace_back(key, std::move(shown));
    }
    result_.texts_.push_back({std::move(key), slice_source(source_, begin, length)});
  }

  void tensor() {
    GgufEntry& entry = result_.entries_.emplace_back();
    entry.name = name();
    const auto rank = number<std::uint32_t>();
    if (rank > kMaxRank) fail(fmt::format("{}: more than {} dimensions", display(entry.name), kMaxRank));
    if (!allowance_.take_tensor(entry.name.size(), rank)) fail(kTooManyTensors);
    for (std::uint32_t i = 0; i < rank; ++i) {
      const auto length = number<std::uint64_t>();
      if (length > INT64_MAX)
        fail(fmt::format("{}: more elements than memory can hold", display(entry.name)));
      entry.shape.push_back(static_cast<std::int64_t>(length));
    }
    entry.type = number<std::uint32_t>();
    entry.offset = number<std::uint64_t>();
    measure(entry);
    // The innermost axis comes first in the file.
    std::ranges::reverse(entry.shape);
  }

  /// Computes how many bytes the shape needs. The axes are still in the order of the file.
  void measure(GgufEntry& entry) const {
    const GgufType* type = type_of(entry.type);
    if (type == nullptr) {
      entry.problem = fmt::format("type {} of ggml is unknown", entry.type);
      return;
    }
    if (!type->dtype && !type->block) entry.problem = fmt::format("type {} is not supported", type->name);
    const BlockLayout layout = layout_of_type(*type);
    const auto elements = checked_size(entry.shape, 1);
    if (!elements) fail(fmt::format("{}: more elements than memory can hold", display(entry.name)));
    const std::uint64_t row = entry.shape.empty() ? 1 : static_cast<std::uint64_t>(entry.shape.front());
    if (row % layout.elements != 0) {
      fail(fmt::format("{}: rows of {} elements are not whole blocks of {}", display(entry.name), row,
                       type->name));
    }
    if (__builtin_mul_overflow(*elements / layout.elements, std::uint64_t{layout.bytes}, &entry.bytes))
      fail(fmt::format("{}: more elements than memory can hold", display(entry.name)));
  }

  void refuse_twins() const {
    std::vector<std::string_view> names;
    names.reserve(result_.entries_.size());
    for (const GgufEntry& entry : result_.entries_) names.push_back(entry.name);
    std::ranges::sort(names);
    const auto twin = std::ranges::adjacent_find(names);
    if (twin != names.end()) fail(fmt::format("refused: duplicate name {}", display(*twin)));
  }

  /// Offsets count from the first aligned byte after the header.
  void place_tensors() {
    result_.header_end_ = at_;
    result_.alignment_ = alignment_;
    const std::uint64_t past = at_ % alignment_;
    const std::uint64_t data = at_ + (past == 0 ? 0 : alignment_ - past);
    std::uint64_t wanted = 0;
    for (GgufEntry& entry : result_.entries_) {
      if (entry.offset % alignment_ != 0)
        fail(fmt::format("{}: its offset is not a multiple of {}", display(entry.name), alignment_));
      std::uint64_t end = 0;
      if (__builtin_add_overflow(entry.offset, data, &entry.offset) ||
          __builtin_add_overflow(entry.offset, entry.bytes, &end))
        fail(fmt::format("{}: its offset is larger than a file can be", display(entry.name)));
      wanted = std::max(wanted, end);
    }
    if (wanted > file_.size()) {
      fail(fmt::format("truncated: {} of {} bytes: the download is not complete, or its header is wrong",
                       file_.size(), wanted));
    }
  }

  void finish_metadata() {
    const auto is_alignment = [](const auto& pair) { return pair.first == "general.alignment"; };
    if (std::ranges::none_of(result_.metadata_, is_alignment))
      result_.metadata_.emplace_back("general.alignment", std::to_string(alignment_));
  }

  GgufFile& result_;
  std::shared_ptr<const ByteSource> source_;
  const ByteSource& file_;
  MemoryAllowance allowance_;
  std::uint64_t at_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<std::byte> window_;
  std::uint64_t window_begin_ = 0;
};

GgufFile::GgufFile(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {
  Parser(*this).run();
}

StoredTensor GgufFile::unpacked(std::size_t index, bool half_steps) const {
  const GgufEntry& entry = entries_.at(index);
  if (!entry.problem.empty())
    throw FormatError(display(file_->name()), fmt::format("{}: {}", display(entry.name), entry.problem));
  const GgufType* type = type_of(entry.type);
  StoredTensor tensor;
  tensor.dtype = type->dtype.value_or(tensor::DType::float32);
  tensor.shape = entry.shape;
  tensor.strides = row_major_strides(tensor.shape);
  // The offset of an empty tensor may be beyond the end of the file.
  tensor.storage = slice_source(file_, entry.bytes == 0 ? 0 : entry.offset, entry.bytes);
  if (type->block) {
    const BlockContent content = half_steps ? BlockContent::half_steps : BlockContent::values;
    tensor.storage = unpacked_source(tensor.storage, *type->block, content);
  }
  return tensor;
}

StoredTensor GgufFile::tensor(std::size_t index) const {
  return unpacked(index, false);
}

std::optional<StoredTensor> GgufFile::half_step(std::size_t index) const {
  const GgufType* type = type_of(entries_.at(index).type);
  if (type == nullptr || !type->block) return {};
  return unpacked(index, true);
}

bool GgufFile::has_searched_scales(std::size_t index) const {
  const GgufType* type = type_of(entries_.at(index).type);
  return type != nullptr && type->block && *type->block != BlockType::q8_0;
}

std::string GgufFile::type_name(std::size_t index) const {
  const GgufType* type = type_of(entries_.at(index).type);
  return type == nullptr ? fmt::format("type {}", entries_[index].type) : std::string(type->name);
}

std::optional<std::int64_t> GgufFile::number(const std::string& key) const {
  const std::string full = architecture_ + "." + key;
  const auto found = std::ranges::find_if(numbers_, [&](const auto& pair) { return pair.first == full; });
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

bool GgufFile::is_gapless() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const GgufEntry& entry : entries_) {
    if (type_of(entry.type) == nullptr) return false;
    parts.emplace_back(entry.offset, entry.bytes);
  }
  std::ranges::sort(parts);
  parts.emplace_back(file_->size(), 0);
  std::uint64_t at = header_end_;
  for (const auto& [offset, bytes] : parts) {
    if (offset < at || offset - at >= alignment_) return false;
    const std::string filler = read_text(*file_, at, offset - at);
    if (filler.find_first_not_of('\0') != std::string::npos) return false;
    at = offset + bytes;
  }
  return true;
}

bool looks_like_gguf(const ByteSource& file) {
  return first_bytes(file, kMark.size()) == kMark;
}

}  // namespace msprobe::formats
