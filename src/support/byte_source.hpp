// SPDX-License-Identifier: Apache-2.0
// Bytes that can be read at any offset: a file on disk or memory. Every reader of foreign formats reads
// through this, so that tests and fuzz targets can pass memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// The place of bytes on disk. Equal places hold the same bytes, whatever names lead there.
struct BytePlace {
  std::uint64_t device = 0;
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  bool operator==(const BytePlace&) const = default;
};

/// Thread-safe random access to immutable bytes.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Size in bytes at the time of opening.
  virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset`. Throws FormatError if the range is not inside the source (the file may also
  /// have shrunk since it was opened) and IoError if the system cannot read.
  virtual void read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// The name used in messages.
  virtual const std::string& name() const = 0;
  /// The place of the first byte, if the bytes are read unchanged from a file.
  virtual std::optional<BytePlace> place() const { return {}; }
};

/// Each read_at() begins with this check: throws FormatError unless the range is inside a source of that
/// size.
void check_range(std::uint64_t offset, std::size_t length, std::uint64_t size, const std::string& name);

/// Opens a regular file for reading. Rejects directories, pipes, sockets and devices with IoError, so that no
/// reader waits forever.
std::shared_ptr<const ByteSource> open_file(const std::string& path);

/// Opens `relative` below `directory`. The name must be relative and must not contain `..`, and no symbolic
/// link on the way may lead out of `directory` (FormatError); a missing file is an IoError.
std::shared_ptr<const ByteSource> open_file_beneath(const std::string& directory,
                                                    const std::string& relative);

/// Bytes in memory.
std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes, std::string name = "memory");
std::shared_ptr<const ByteSource> memory_source(std::string_view bytes, std::string name = "memory");

/// A part of another source; offsets count from `begin`. Throws FormatError if the part is not inside
/// `parent`.
std::shared_ptr<const ByteSource> slice_source(std::shared_ptr<const ByteSource> parent, std::uint64_t begin,
                                               std::uint64_t size);

/// These bytes as text.
std::string read_text(const ByteSource& source, std::uint64_t offset, std::uint64_t size);
/// The first bytes, at most `size`.
std::string first_bytes(const ByteSource& source, std::uint64_t size);
/// The whole source; throws FormatError with the file's name if it is larger than `limit` bytes.
std::string read_all(const ByteSource& source, std::uint64_t limit);

}  // namespace msprobe
