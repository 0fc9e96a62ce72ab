// SPDX-License-Identifier: Apache-2.0
#include "formats/mindspore_ckpt.hpp"

#include <fmt/format.h>

#include "formats/joined_tensor.hpp"
#include "formats/limits.hpp"
#include "formats/message_fields.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

constexpr std::uint64_t kMaxType = 64;
constexpr std::string_view kWhat = "MindSpore checkpoint";

// A checksum that may follow the message: these letters and ten bytes.
constexpr std::string_view kChecksumMark = "crc_num";
constexpr std::uint64_t kChecksumSize = 17;

/// Where the message ends: before the checksum, if there is one.
std::uint64_t message_end(const ByteSource& file) {
  const std::uint64_t size = file.size();
  if (size < kChecksumSize) return size;
  const bool checked = read_text(file, size - kChecksumSize, kChecksumMark.size()) == kChecksumMark;
  return checked ? size - kChecksumSize : size;
}

}  // namespace

class MindSporeCkpt::Parser {
 public:
  explicit Parser(const ByteSource& file) : file_(file), allowance_(file.size()) {}

  std::vector<MindSporeEntry> run() {
    MessageFields top(file_, 0, message_end(file_), kWhat);
    MessageFields::MessageField field;
    while (top.next(field)) {
      if (field.number == 1 && field.wire == 2) value(field.offset, field.offset + field.length);
    }
    std::vector<MindSporeEntry> tensors;
    for (MindSporeEntry& entry : entries_) {
      if (!entry.type.empty() && entry.type != "str") tensors.push_back(std::move(entry));
    }
    return tensors;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw FormatError(display(file_.name()), reason);
  }

  std::string text(const MessageFields::MessageField& field, std::uint64_t limit) const {
    if (field.length > limit) fail(fmt::format("refused: a name of {} bytes", field.length));
    return read_text(file_, field.offset, field.length);
  }

  void value(std::uint64_t begin, std::uint64_t end) {
    MessageFields fields(file_, begin, end, kWhat);
    MessageFields::MessageField field;
    MindSporeEntry entry;
    while (fields.next(field)) {
      if (field.number == 1 && field.wire == 2) {
        entry.name = text(field, kMaxName);
      } else if (field.number == 2 && field.wire == 2) {
        tensor(entry, field.offset, field.offset + field.length);
      } else if (field.number == 3) {
        entry.type = "map";
        entry.problem = "a map parameter, which is not supported";
      }
    }
    // MindSpore cuts a large tensor into consecutive values of the same name.
    if (!allowance_.take_tensor(entry.name.size(), entry.shape.size())) fail(kTooManyTensors);
    if (!entries_.empty() && entries_.back().name == entry.name && entries_.back().type == entry.type &&
        entries_.back().shape == entry.shape && !entry.parts.empty()) {
      std::vector<FileStretch>& parts = entries_.back().parts;
      parts.insert(parts.end(), entry.parts.begin(), entry.parts.end());
      return;
    }
    entries_.push_back(std::move(entry));
  }

  void tensor(MindSporeEntry& entry, std::uint64_t begin, std::uint64_t end) {
    MessageFields fields(file_, begin, end, kWhat);
    MessageFields::MessageField field;
    const auto dimension = [&](std::uint64_t value) {
      if (entry.shape.size() == kMaxRank) fail("refused: a tensor with more than 64 dimensions");
      entry.shape.push_back(static_cast<std::int64_t>(value));
    };
    while (fields.next(field)) {
      if (field.number == 1 && field.wire == 0) {
        dimension(field.value);
      } else if (field.number == 1 && field.wire == 2) {
        MessageFields packed(file_, field.offset, field.offset + field.length, kWhat);
        while (!packed.at_end()) dimension(packed.varint());
      } else if (field.number == 2 && field.wire == 2) {
        entry.type = text(field, kMaxType);
      } else if (field.number == 3 && field.wire == 2) {
        entry.parts.push_back({field.offset, field.length});
      }
    }
  }

  const ByteSource& file_;
  MemoryAllowance allowance_;
  std::vector<MindSporeEntry> entries_;
};

MindSporeCkpt::MindSporeCkpt(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {
  entries_ = Parser(*file_).run();
}

StoredTensor MindSporeCkpt::tensor(std::size_t index) const {
  const MindSporeEntry& entry = entries_.at(index);
  const auto fail = [&](const std::string& reason) {
    throw FormatError(display(file_->name()), fmt::format("{}: {}", display(entry.name), reason));
  };
  if (!entry.problem.empty()) fail(entry.problem);
  const auto dtype = tensor::dtype_from_mindspore(entry.type);
  if (!dtype) fail(fmt::format("element type {} is not supported", display(entry.type)));
  StoredTensor tensor;
  tensor.dtype = *dtype;
  std::vector<std::shared_ptr<const ByteSource>> parts;
  std::uint64_t bytes = 0;
  for (const FileStretch& part : entry.parts) {
    if (part.bytes == 0) continue;
    parts.push_back(slice_source(file_, part.offset, part.bytes));
    bytes += part.bytes;  // the parts are disjoint ranges of the file, so this sum cannot overflow
  }
  tensor.shape = entry.shape;
  const std::uint64_t item = tensor::info(*dtype).size;
  if (tensor.shape == std::vector<std::int64_t>{0} && bytes == item)
    tensor.shape.clear();  // MindSpore writes a scalar as the shape {0}
  const auto wanted = checked_size(tensor.shape, item);
  if (!wanted) fail("a shape larger than memory can hold");
  if (*wanted != bytes) fail(fmt::format("{} bytes for elements that need {}", bytes, *wanted));
  tensor.strides = row_major_strides(tensor.shape);
  tensor.storage = parts.size() == 1 ? parts[0] : join_bytes(parts, file_->name());
  return tensor;
}

bool looks_like_mindspore_ckpt(const ByteSource& file) {
  try {
    MessageFields top(file, 0, message_end(file), kWhat);
    MessageFields::MessageField value;
    if (!top.next(value) || value.number != 1 || value.wire != 2) return false;
    MessageFields inner(file, value.offset, value.offset + value.length, kWhat);
    MessageFields::MessageField name;
    return inner.next(name) && name.number == 1 && name.wire == 2 && name.length > 0 &&
           name.length <= kMaxName;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace msprobe::formats
