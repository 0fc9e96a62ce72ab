// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <queue>

#include "checkpoint/parameter.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using formats::ElementReader;
using formats::StoredTensor;

const char kNoTiling[] = "its parts leave a gap or overlap";

// Runs of at least this many bytes are read straight into the caller's memory.
constexpr std::size_t kDirect = std::size_t{16} << 10;
constexpr std::size_t kLargestBuffer = std::size_t{256} << 10;
// The memory that a stored tensor may need beyond what was announced for it.
constexpr std::uint64_t kUnannounced = std::uint64_t{1} << 20;

/// The tensor in another shape of as many elements.
StoredTensor viewed(StoredTensor tensor, const Shape& view, const std::string& name) {
  if (tensor.shape == view) return tensor;
  if (tensor.is_contiguous()) {
    tensor.shape = view;
    tensor.strides = formats::row_major_strides(view);
    return tensor;
  }
  // Strides stay what they are if only axes of length 1 come or go.
  std::vector<std::int64_t> strides;
  std::size_t at = 0;
  for (const std::int64_t length : view) {
    if (length == 1) {
      strides.push_back(0);
      continue;
    }
    while (at < tensor.shape.size() && tensor.shape[at] == 1) ++at;
    if (at == tensor.shape.size() || tensor.shape[at] != length) {
      throw FormatError(display(name), "a non-contiguous view cannot be reshaped");
    }
    strides.push_back(tensor.strides[at++]);
  }
  tensor.shape = view;
  tensor.strides = std::move(strides);
  return tensor;
}

/// One block, read from its first to its last element.
class BlockStream {
 public:
  BlockStream(const Parameter& parameter, const ParameterBlock& block, std::size_t buffer)
      : size_(tensor::info(parameter.dtype).size) {
    StoredTensor tensor = (*block.source)();
    if (tensor.dtype != parameter.dtype || tensor.numel() != checked_numel(block.view, parameter.name)) {
      throw FormatError(
          display(tensor.storage->name()),
          fmt::format("{} has type {} and shape {}, not those announced", display(parameter.name),
                      tensor::info(tensor.dtype).name, shape_text(tensor.shape)));
    }
    tensor = viewed(std::move(tensor), block.view, parameter.name);
    for (std::size_t i = 0; i < block.view.size(); ++i) {
      tensor.offset += block.begin[i] * tensor.strides[i];
      tensor.shape[i] = block.size[i];
    }
    put_in_order(block, tensor);
    if (ElementReader::memory_need(tensor) > block.memory + kUnannounced) {
      throw FormatError(display(tensor.storage->name()),
                        "refused: a permuted view where whole slices are expected");
    }
    reader_.emplace(tensor);
    buffer_.resize(buffer / size_ * size_);
  }

  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      if (begin_ == end_) {
        if (buffer_.empty() || out.size() >= std::max(buffer_.size(), kDirect)) {
          reader_->read(out);
          return;
        }
        const std::uint64_t left = static_cast<std::uint64_t>(reader_->remaining()) * size_;
        begin_ = 0;
        end_ = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), left));
        reader_->read(std::span(buffer_).first(end_));
      }
      const std::size_t count = std::min(out.size(), end_ - begin_);
      std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), count, out.begin());
      begin_ += count;
      out = out.subspan(count);
    }
  }

 private:
  /// The axes of the parameter may come in another order than those of the tensor.
  static void put_in_order(const ParameterBlock& block, StoredTensor& tensor) {
    if (std::is_sorted(block.axes.begin(), block.axes.end())) return;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    for (const int axis : block.axes) {
      shape.push_back(tensor.shape[static_cast<std::size_t>(axis)]);
      strides.push_back(tensor.strides[static_cast<std::size_t>(axis)]);
    }
    // All other axes have the length 1.
    tensor.shape = std::move(shape);
    tensor.strides = std::move(strides);
  }

  std::size_t size_;
  std::optional<ElementReader> reader_;
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// The places of a block's runs in the row-major order of the parameter. A run is the largest part of the
/// block that is contiguous there.
class Runs {
 public:
  Runs(const Parameter& parameter, const ParameterBlock& block) : block_(&block) {
    const Shape& shape = parameter.shape;
    std::int64_t inner = 1;
    outer_ = shape.size();
    length_ = 1;
    while (outer_ > 0) {
      --outer_;
      length_ = inner * block.extent(outer_);
      if (block.extent(outer_) != shape[outer_]) break;
      inner *= shape[outer_];
    }
    counter_.assign(outer_, 0);
    std::int64_t stride = 1;
    strides_.resize(shape.size());
    for (std::size_t i = shape.size(); i-- > 0;) {
      strides_[i] = stride;
      start_ += block.offset[i] * stride;
      stride *= shape[i];
    }
  }
  std::int64_t start() const { return start_; }
  std::int64_t length() const { return length_; }
  /// Returns false after the last run.
  bool next() {
    for (std::size_t i = outer_; i-- > 0;) {
      start_ += strides_[i];
      if (++counter_[i] < block_->extent(i)) return true;
      start_ -= counter_[i] * strides_[i];
      counter_[i] = 0;
    }
    return false;
  }

 private:
  const ParameterBlock* block_;
  std::size_t outer_ = 0;  // axes before this one are stepped through
  std::int64_t start_ = 0;
  std::int64_t length_ = 0;
  std::vector<std::int64_t> counter_;
  std::vector<std::int64_t> strides_;
};

void check_inside(const Parameter& parameter, const ParameterBlock& block) {
  bool inside = block.axes.size() == parameter.shape.size() && block.offset.size() == parameter.shape.size();
  for (std::size_t i = 0; inside && i < parameter.shape.size(); ++i) {
    inside = block.offset[i] >= 0 && block.offset[i] <= parameter.shape[i] - block.extent(i);
  }
  for (std::size_t i = 0; inside && i < block.view.size(); ++i) {
    inside = block.begin[i] >= 0 && block.size[i] >= 0 && block.begin[i] <= block.view[i] - block.size[i];
  }
  if (!inside) throw FormatError(display(parameter.name), "one of its parts lies outside it");
}

}  // namespace

struct ParameterReader::Impl {
  explicit Impl(const Parameter& from) : parameter(from), size(tensor::info(from.dtype).size) {
    total = checked_numel(parameter.shape, parameter.name);
    std::size_t used = 0;
    std::int64_t covered = 0;
    for (std::size_t i = 0; i < parameter.blocks.size(); ++i) {
      const ParameterBlock& block = parameter.blocks[i];
      check_inside(parameter, block);
      runs.emplace_back(parameter, block);
      const std::int64_t numel = checked_numel(block.size, parameter.name);
      if (numel == 0) continue;
      if (__builtin_add_overflow(covered, numel, &covered)) covered = -1;
      queue.push({runs[i].start(), i});
      ++used;
    }
    // The order of the runs is checked while reading; together with this sum it excludes overlaps.
    if (covered != total) throw FormatError(display(parameter.name), kNoTiling);
    streams.resize(parameter.blocks.size());
    buffer = used < 2 ? 0 : std::clamp(kBuffers / used, size, kLargestBuffer);
  }

  void advance() {
    if (in_run == 0) {
      if (current) finish_run();
      if (queue.empty() || queue.top().first != done) {
        throw FormatError(display(parameter.name), kNoTiling);
      }
      current = queue.top().second;
      queue.pop();
      in_run = runs[*current].length();
      std::unique_ptr<BlockStream>& stream = streams[*current];
      // A block of one run is never read in turns with others.
      if (stream == nullptr) {
        const ParameterBlock& block = parameter.blocks[*current];
        const bool one_run = in_run == numel_of(block.size);
        stream = std::make_unique<BlockStream>(parameter, block, one_run ? 0 : buffer);
      }
    }
  }

  void finish_run() {
    Runs& block = runs[*current];
    if (block.next()) {
      queue.push({block.start(), *current});
    } else {
      streams[*current].reset();
    }
    current.reset();
  }

  using Next = std::pair<std::int64_t, std::size_t>;  // where its next run starts, the block
  Parameter parameter;
  std::size_t size;
  std::int64_t total = 0;
  std::int64_t done = 0;
  std::vector<Runs> runs;
  std::vector<std::unique_ptr<BlockStream>> streams;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> queue;
  std::optional<std::size_t> current;
  std::int64_t in_run = 0;  // elements left of the run that is being read
  std::size_t buffer = 0;
};

ParameterReader::ParameterReader(const Parameter& parameter) : impl_(std::make_unique<Impl>(parameter)) {}

ParameterReader::~ParameterReader() = default;

std::int64_t ParameterReader::remaining() const {
  return impl_->total - impl_->done;
}

void ParameterReader::read(std::span<std::byte> out) {
  if (out.size() % impl_->size != 0 || out.size() / impl_->size > static_cast<std::uint64_t>(remaining())) {
    throw FormatError(display(impl_->parameter.name), "more elements requested than there are");
  }
  while (!out.empty()) {
    impl_->advance();
    const auto wanted = static_cast<std::int64_t>(out.size() / impl_->size);
    const std::int64_t count = std::min(wanted, impl_->in_run);
    const std::size_t bytes = static_cast<std::size_t>(count) * impl_->size;
    impl_->streams[*impl_->current]->read(out.first(bytes));
    out = out.subspan(bytes);
    impl_->done += count;
    impl_->in_run -= count;
  }
}

}  // namespace msprobe::checkpoint
