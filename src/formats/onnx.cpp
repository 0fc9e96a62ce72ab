// SPDX-License-Identifier: Apache-2.0
#include "formats/onnx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "formats/limits.hpp"
#include "formats/message_fields.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

using tensor::DType;

constexpr std::string_view kOnnxModel = "ONNX model";
// The limit for the key-value pairs that locate the elements of a tensor in another file.
constexpr std::size_t kMostPairs = 16;

// Fields of ModelProto, GraphProto and TensorProto.
constexpr std::uint64_t kIrVersion = 1;
constexpr std::uint64_t kGraph = 7;
constexpr std::uint64_t kInitializer = 5;
enum TensorField : std::uint64_t {
  kDims = 1,
  kDataType = 2,
  kFloats = 4,
  kInt32s = 5,
  kTexts = 6,
  kInt64s = 7,
  kName = 8,
  kRaw = 9,
  kDoubles = 10,
  kUint64s = 11,
  kExternal = 13,
  kDataLocation = 14,
};

/// A TensorProto.DataType, and the field that holds elements of this type if they are not raw.
struct OnnxType {
  std::uint64_t id;
  DType dtype;
  std::uint64_t field;
};
constexpr std::array kOnnxTypes = {
    OnnxType{1, DType::float32, kFloats},
    OnnxType{2, DType::uint8, kInt32s},
    OnnxType{3, DType::int8, kInt32s},
    OnnxType{4, DType::uint16, kInt32s},
    OnnxType{5, DType::int16, kInt32s},
    OnnxType{6, DType::int32, kInt32s},
    OnnxType{7, DType::int64, kInt64s},
    OnnxType{9, DType::boolean, kInt32s},
    OnnxType{10, DType::float16, kInt32s},
    OnnxType{11, DType::float64, kDoubles},
    OnnxType{12, DType::uint32, kUint64s},
    OnnxType{13, DType::uint64, kUint64s},
    OnnxType{14, DType::complex64, kFloats},
    OnnxType{15, DType::complex128, kDoubles},
    OnnxType{16, DType::bfloat16, kInt32s},
    OnnxType{17, DType::float8_e4m3fn, kInt32s},
    OnnxType{18, DType::float8_e4m3fnuz, kInt32s},
    OnnxType{19, DType::float8_e5m2, kInt32s},
    OnnxType{20, DType::float8_e5m2fnuz, kInt32s},
    OnnxType{24, DType::float8_e8m0fnu, kInt32s},
};

bool holds_elements(std::uint64_t field) {
  return field == kFloats || field == kInt32s || field == kTexts || field == kInt64s || field == kRaw ||
         field == kDoubles || field == kUint64s;
}

}  // namespace

class OnnxModel::Parser {
 public:
  explicit Parser(const ByteSource& file) : file_(file), allowance_(file.size()) {}

  std::vector<OnnxEntry> run() {
    each_field(0, file_.size(), [&](const Field& field) {
      if (!field.is_bytes(kGraph)) return;
      each_field(field.offset, field.length, [&](const Field& part) {
        if (part.is_bytes(kInitializer)) tensor(part);
      });
    });
    return std::move(entries_);
  }

 private:
  using Field = MessageFields::MessageField;

  template <typename Take>
  void each_field(std::uint64_t begin, std::uint64_t length, const Take& take) const {
    MessageFields fields(file_, begin, begin + length, kOnnxModel);
    Field field;
    while (fields.next(field)) take(field);
  }

  [[noreturn]] void fail(const std::string& reason) const {
    throw FormatError(display(file_.name()), reason);
  }

  std::string text(const Field& field) {
    if (field.length > kMaxName || !allowance_.take(field.length))
      fail(fmt::format("refused: a name of {} bytes", field.length));
    return read_text(file_, field.offset, field.length);
  }

  void tensor(const Field& message) {
    OnnxEntry entry;
    const auto dimension = [&](std::uint64_t length) {
      if (entry.shape.size() == kMaxRank) fail(fmt::format("refused: more than {} dimensions", kMaxRank));
      entry.shape.push_back(static_cast<std::int64_t>(length));
    };
    each_field(message.offset, message.length, [&](const Field& field) {
      if (field.number == kDims && field.wire == 0) {
        dimension(field.value);
      } else if (field.is_bytes(kDims)) {
        MessageFields packed(file_, field.offset, field.offset + field.length, kOnnxModel);
        while (!packed.at_end()) dimension(packed.varint());
      } else if (field.number == kDataType && field.wire == 0) {
        entry.type = field.value;
      } else if (field.is_bytes(kName)) {
        entry.name = text(field);
      } else if (field.is_bytes(kExternal)) {
        location(field, entry);
      } else if (field.number == kDataLocation && field.wire == 0) {
        entry.external = field.value == 1;
      } else if (holds_elements(field.number) && (field.wire != 2 || field.length > 0)) {
        entry.several = entry.several || entry.field != 0 || field.wire != 2;
        entry.field = field.number;
        entry.data = {field.offset, field.length};
      }
    });
    if (!allowance_.take_tensor(entry.name.size(), entry.shape.size())) fail(kTooManyTensors);
    entries_.push_back(std::move(entry));
  }

  void location(const Field& pair, OnnxEntry& entry) {
    std::pair<std::string, std::string> found;
    each_field(pair.offset, pair.length, [&](const Field& field) {
      if (field.is_bytes(1)) found.first = text(field);
      if (field.is_bytes(2)) found.second = text(field);
    });
    if (entry.location.size() == kMostPairs) fail("refused: a tensor with many places");
    entry.location.push_back(std::move(found));
  }

  const ByteSource& file_;
  MemoryAllowance allowance_;
  std::vector<OnnxEntry> entries_;
};

OnnxModel::OnnxModel(std::shared_ptr<const ByteSource> file, OpenBeside open_beside)
    : file_(std::move(file)), open_beside_(std::move(open_beside)) {
  entries_ = Parser(*file_).run();
}

void OnnxModel::fail(const OnnxEntry& entry, const std::string& reason) const {
  throw FormatError(display(file_->name()), fmt::format("{}: {}", display(entry.name), reason));
}

/// The elements of a tensor that are in another file.
std::shared_ptr<const ByteSource> OnnxModel::external(const OnnxEntry& entry, std::uint64_t wanted) const {
  std::string name;
  std::uint64_t offset = 0;
  std::uint64_t length = wanted;
  for (const auto& [key, value] : entry.location) {
    if (key == "location") name = value;
    if (key != "offset" && key != "length") continue;
    const auto number = whole_number<std::uint64_t>(value);
    if (!number) fail(entry, fmt::format("its {} '{}' is not a number", key, display(value)));
    (key == "offset" ? offset : length) = *number;
  }
  if (name.empty()) fail(entry, "its elements are in another file, which is not named");
  if (length != wanted) fail(entry, fmt::format("{} bytes for elements that need {}", length, wanted));
  const std::shared_ptr<const ByteSource> other = open_beside_(name);
  if (offset > other->size() || wanted > other->size() - offset) {
    fail(entry, fmt::format("truncated: {} has {} bytes, and its elements end beyond them", display(name),
                            other->size()));
  }
  return slice_source(other, offset, wanted);
}

/// The elements of a list of varints: the low bytes of each number.
std::shared_ptr<const ByteSource> OnnxModel::numbers(const OnnxEntry& entry, std::uint64_t count,
                                                     std::size_t size) const {
  // A varint takes at least one byte.
  if (count > entry.data.bytes || count > ElementReader::kMaxGather / size)
    fail(entry, fmt::format("{} elements in a list of {} bytes", count, entry.data.bytes));
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
  MessageFields list(*file_, entry.data.offset, entry.data.offset + entry.data.bytes, kOnnxModel);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = list.varint();
    for (std::size_t k = 0; k < size; ++k)
      bytes[i * size + k] = static_cast<std::byte>(value >> (8 * k) & 0xFF);
  }
  if (!list.at_end()) fail(entry, "more elements than its shape has");
  return memory_source(std::move(bytes), file_->name());
}

StoredTensor OnnxModel::tensor(std::size_t index) const {
  const OnnxEntry& entry = entries_.at(index);
  const auto* type =
      std::ranges::find_if(kOnnxTypes, [&](const OnnxType& each) { return each.id == entry.type; });
  if (type == kOnnxTypes.end()) fail(entry, fmt::format("elements of type {} are not supported", entry.type));
  StoredTensor tensor;
  tensor.dtype = type->dtype;
  tensor.shape = entry.shape;
  const std::size_t size = tensor::info(type->dtype).size;
  const auto checked = checked_size(entry.shape, size);
  if (!checked) fail(entry, "a shape larger than memory can hold");
  tensor.strides = row_major_strides(tensor.shape);
  const std::uint64_t wanted = *checked;
  if (wanted == 0) {
    tensor.storage = memory_source(std::string_view(), file_->name());
    return tensor;
  }
  if (entry.external) {
    tensor.storage = external(entry, wanted);
    return tensor;
  }
  if (entry.several) fail(entry, "its elements are not in one piece, which is not supported");
  if (entry.field != kRaw && entry.field != type->field) fail(entry, "it has no elements of its type");
  const bool as_they_are = entry.field == kRaw || entry.field == kFloats || entry.field == kDoubles;
  if (!as_they_are) {
    tensor.storage = numbers(entry, wanted / size, size);
    return tensor;
  }
  if (entry.data.bytes != wanted)
    fail(entry, fmt::format("{} bytes for elements that need {}", entry.data.bytes, wanted));
  tensor.storage = slice_source(file_, entry.data.offset, entry.data.bytes);
  return tensor;
}

bool looks_like_onnx(const ByteSource& file) {
  constexpr std::uint64_t kMostFields = 100'000;
  constexpr std::uint64_t kLastField = 25;
  try {
    MessageFields fields(file, 0, file.size(), kOnnxModel);
    MessageFields::MessageField field;
    bool has_version = false;
    bool has_graph = false;
    for (std::uint64_t i = 0; fields.next(field); ++i) {
      if (i == kMostFields || field.number > kLastField) return false;
      if (field.number == kIrVersion && field.wire != 0) return false;
      has_version = has_version || field.number == kIrVersion;
      has_graph = has_graph || field.is_bytes(kGraph);
    }
    return has_version && has_graph;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace msprobe::formats
