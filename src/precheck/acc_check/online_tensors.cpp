// SPDX-License-Identifier: Apache-2.0
#include "precheck/acc_check/online_tensors.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kMostAxes = 64;
constexpr std::size_t kLongestTensorName = 250;

[[noreturn]] void refuse_tensor(std::string_view name, std::string_view reason) {
  throw FormatError(fmt::format("the training sent a tensor '{}' {}", display(name), reason));
}

/// Whether a name can be that of a file, since saved calls use it as such.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestTensorName && name.front() != '.' &&
         std::ranges::none_of(name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; });
}

}  // namespace

ReceivedFile::ReceivedFile(int descriptor) : descriptor_(descriptor) {
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) != 0) throw IoError(name_, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw IoError(name_, "not a regular file");
}

std::uint64_t ReceivedFile::size() const {
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) != 0) throw IoError(name_, std::strerror(errno));
  return static_cast<std::uint64_t>(status.st_size);
}

void ReceivedFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  check_range(offset, out.size(), size(), name_);
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw IoError(name_, got == 0 ? "cut off" : std::strerror(errno));
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

void ReceivedFile::release(std::uint64_t begin, std::uint64_t size) const noexcept {
  // If the file system cannot free the bytes, the file only gets larger.
  if (size > 0)
    static_cast<void>(::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(begin), static_cast<off_t>(size)));
}

void ReceivedTensors::add(const dump::Entry& message, dump::Entry::Index names,
                          const std::shared_ptr<const ByteSource>& file) {
  using dump::NodeKind;
  if (!message.is(names, NodeKind::object)) throw FormatError("the training sent no table of tensors");
  message.children(names, [&](dump::Entry::Index child) {
    const std::string_view name = message.key(child);
    std::vector<dump::Entry::Index> parts;
    if (message.is(child, NodeKind::array))
      message.children(child, [&](dump::Entry::Index part) { parts.push_back(part); });
    constexpr std::string_view kIncomplete = "without a type, a shape and a place";
    if (!is_file_name(name) || parts.size() != 3) refuse_tensor(name, kIncomplete);
    const auto dtype = tensor::dtype_from_torch(message.string(parts[0]));
    if (!dtype || !message.is(parts[1], NodeKind::array)) refuse_tensor(name, kIncomplete);
    formats::StoredTensor stored;
    stored.dtype = *dtype;
    std::uint64_t size = tensor::info(*dtype).size;
    bool fits = true;
    message.children(parts[1], [&](dump::Entry::Index axis) {
      const auto length = message.integer(axis);
      fits = fits && length && *length >= 0 && stored.shape.size() < kMostAxes &&
             !__builtin_mul_overflow(size, static_cast<std::uint64_t>(*length), &size);
      stored.shape.push_back(length.value_or(0));
    });
    const auto offset = message.integer(parts[2]);
    if (!fits || !offset || *offset < 0) refuse_tensor(name, "of an impossible size");
    stored.strides = formats::row_major_strides(stored.shape);
    stored.storage = slice_source(file, static_cast<std::uint64_t>(*offset), size);
    tensors_.insert_or_assign(std::string(name), std::move(stored));
  });
}

formats::StoredTensor ReceivedTensors::open(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) refuse_tensor(name, "that it did not send");
  return found->second;
}

}  // namespace msprobe::precheck
