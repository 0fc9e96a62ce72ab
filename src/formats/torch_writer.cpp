// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include "archive/zip_writer.hpp"
#include "formats/stored_tensor.hpp"
#include "formats/writers.hpp"
#include "support/error.hpp"
#include "support/little_endian.hpp"
#include "support/text.hpp"

namespace msprobe::formats {
namespace {

/// Writes pickles of tensors with the same opcodes as PyTorch's own pickles of protocol 2.
class TensorPickler {
 public:
  std::string one(const TensorSpec& spec, std::uint64_t bytes) {
    tensor(spec, bytes);
    return std::move(out_) + '.';
  }

  std::string dict(const std::vector<TensorSpec>& specs, const std::vector<std::uint64_t>& bytes) {
    constexpr std::size_t kBatch = 1000;
    out_ += '}';
    memoize();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (i % kBatch == 0) out_ += '(';
      text(specs[i].name);
      tensor(specs[i], bytes[i]);
      if (i % kBatch == kBatch - 1 || i + 1 == specs.size()) out_ += 'u';
    }
    return std::move(out_) + '.';
  }

 private:
  void tensor(const TensorSpec& spec, std::uint64_t bytes) {
    // A storage class of module torch implies its dtype. A dtype without such a class gets an untyped
    // storage, and the rebuild call names the dtype.
    const std::string_view storage = tensor::storage_class_of(spec.dtype);
    const bool typed = !storage.empty();
    const tensor::DTypeInfo& type = tensor::info(spec.dtype);
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += "((";
    shared_text("storage");
    typed ? global("torch", storage) : global("torch.storage", "UntypedStorage");
    text(std::to_string(key_++));
    shared_text("cpu");
    integer(static_cast<std::int64_t>(typed ? bytes / type.size : bytes));
    out_ += 't';
    memoize();
    out_ += 'Q';
    integer(0);
    tuple(spec.shape);
    tuple(row_major_strides(spec.shape));
    out_ += '\x89';  // requires_grad: False
    global("collections", "OrderedDict");
    out_ += ")R";
    memoize();
    if (!typed) global("torch", type.name);
    out_ += 't';
    memoize();
    out_ += 'R';
    memoize();
  }

  void memoize() { with_index('q', 'r', memo_++); }

  /// Writes the opcode for an index of one byte, or the one for four.
  void with_index(char brief, char wide, std::uint32_t index) {
    out_ += index < 256 ? brief : wide;
    if (index < 256) {
      out_ += static_cast<char>(index);
    } else {
      append_le(out_, index);
    }
  }

  /// If the memo has the value already, fetches it and returns true.
  bool recall(const std::string& key) {
    const auto [place, inserted] = shared_.try_emplace(key, memo_);
    if (!inserted) with_index('h', 'j', place->second);
    return !inserted;
  }

  void global(std::string_view module, std::string_view name) {
    const std::string both = fmt::format("{}\n{}\n", module, name);
    if (recall(both)) return;
    out_ += 'c' + both;
    memoize();
  }

  void shared_text(const std::string& value) {
    if (!recall(value)) text(value);
  }

  void text(const std::string& value) {
    out_ += 'X';
    append_le(out_, static_cast<std::uint32_t>(value.size()));
    out_ += value;
    memoize();
  }

  void integer(std::int64_t value) {
    if (value < 256) {
      out_ += 'K';
      out_ += static_cast<char>(value);
    } else if (value < 65536) {
      out_ += 'M';
      append_le(out_, static_cast<std::uint16_t>(value));
    } else if (value <= std::numeric_limits<std::int32_t>::max()) {
      out_ += 'J';
      append_le(out_, static_cast<std::uint32_t>(value));
    } else {
      // The fewest bytes that hold the value and its sign bit.
      std::string bytes;
      for (auto rest = static_cast<std::uint64_t>(value); rest != 0; rest >>= 8)
        bytes += static_cast<char>(rest & 0xff);
      if ((bytes.back() & 0x80) != 0) bytes += '\0';
      out_ += '\x8a';
      out_ += static_cast<char>(bytes.size());
      out_ += bytes;
    }
  }

  void tuple(const std::vector<std::int64_t>& values) {
    if (values.empty()) {
      out_ += ')';
      return;
    }
    if (values.size() > 3) out_ += '(';
    for (const std::int64_t value : values) integer(value);
    constexpr std::string_view kTuples = "\x85\x86\x87";
    out_ += values.size() > 3 ? 't' : kTuples[values.size() - 1];
    memoize();
  }

  std::string out_ = "\x80\x02";
  std::uint32_t memo_ = 0;
  std::uint64_t key_ = 0;
  std::unordered_map<std::string, std::uint32_t> shared_;
};

/// The folder of all records: as in PyTorch, the file's name without the part from its last dot on.
std::string root_of(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) name.resize(dot);
  // PyTorch uses this name if the file has none.
  if (name.empty() || !is_utf8(name)) return "archive";
  return name;
}

class TorchWriter final : public TensorWriter {
 public:
  TorchWriter(OutputFile& file, std::vector<TensorSpec> specs)
      : TensorWriter(std::move(specs)),
        zip_(file, archive::ZipStyle::torch),
        root_(root_of(file.path()) + '/') {
    for (const TensorSpec& spec : specs_) sizes_.push_back(payload_size(spec, file.path()));
    const bool bare = specs_.size() == 1 && specs_[0].name.empty();
    if (!bare) check_names(specs_, file.path());
    TensorPickler pickler;
    zip_.add(root_ + "data.pkl", bare ? pickler.one(specs_[0], sizes_[0]) : pickler.dict(specs_, sizes_));
    zip_.add(root_ + ".format_version", "1");
    zip_.add(root_ + ".storage_alignment", "64");
    zip_.add(root_ + "byteorder", "little");
  }
  void begin(std::size_t index, std::optional<std::uint32_t> crc) override {
    zip_.begin(fmt::format("{}data/{}", root_, index), sizes_.at(index), crc);
  }
  void write(std::span<const std::byte> bytes) override { zip_.write(bytes); }
  void end() override { zip_.end(); }
  void finish() override {
    zip_.add(root_ + "version", "3\n");
    zip_.add(root_ + ".data/serialization_id",
             fmt::format("{:020}{:020}", zip_.hash_of_names(), zip_.hash_of_contents()));
    zip_.finish();
  }

 private:
  archive::ZipWriter zip_;
  std::string root_;
  std::vector<std::uint64_t> sizes_;
};

}  // namespace

std::unique_ptr<TensorWriter> make_torch_writer(OutputFile& file, std::vector<TensorSpec> specs) {
  return std::make_unique<TorchWriter>(file, std::move(specs));
}

}  // namespace msprobe::formats
