// SPDX-License-Identifier: Apache-2.0
#include "precheck/runner/shared_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr std::size_t kTransferPiece = std::size_t{64} << 20;
// The descriptor must differ from those that a runner uses for its own ends.
constexpr int kFirstDescriptor = 10;

[[noreturn]] void fail(const std::string& what) {
  throw IoError(what, std::strerror(errno));
}

/// An open file without a name.
Descriptor nameless_file() {
  const char* variable = std::getenv("TMPDIR");
  const std::string folder = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  Descriptor made(::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (made.get() >= 0) return made;
  std::string name = folder + "/msprobe-XXXXXX";
  Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (named.get() < 0) fail(folder);
  ::unlink(name.c_str());
  return named;
}

}  // namespace

SharedFile::SharedFile() : descriptor_(::fcntl(nameless_file().get(), F_DUPFD_CLOEXEC, kFirstDescriptor)) {
  if (descriptor() < 0) fail("a temporary file");
}

void SharedFile::clear() {
  if (::ftruncate(descriptor(), 0) != 0) fail("a temporary file");
  end_ = 0;
}

std::uint64_t SharedFile::begin_tensor() {
  end_ = (end_ + kAlignment - 1) / kAlignment * kAlignment;
  return end_;
}

void SharedFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    check_interrupt();
    const ssize_t written = ::pwrite(descriptor(), bytes.data(), std::min(bytes.size(), kTransferPiece),
                                     static_cast<off_t>(end_));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail("a temporary file");
    }
    end_ += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::uint64_t SharedFile::size() const {
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0) fail("a temporary file");
  return static_cast<std::uint64_t>(status.st_size);
}

bool SharedFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size()) return false;  // also for an offset that no file can have
  while (!out.empty()) {
    const ssize_t got =
        ::pread(descriptor(), out.data(), std::min(out.size(), kTransferPiece), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("a temporary file");
    }
    if (got == 0) return false;
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace msprobe::precheck
