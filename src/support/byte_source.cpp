// SPDX-License-Identifier: Apache-2.0
#include "support/byte_source.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "support/error.hpp"
#include "support/log.hpp"
#include "support/text.hpp"
#include "support/walk_beneath.hpp"

namespace msprobe {
namespace {

[[noreturn]] void out_of_range(const std::string& name) {
  throw FormatError(display(name), "truncated: data expected beyond the end of the file");
}

class FileSource final : public ByteSource {
 public:
  FileSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
    struct stat info {};
    if (::fstat(fd_, &info) != 0) fail(errno);
    if (S_ISDIR(info.st_mode)) fail(EISDIR);
    if (!S_ISREG(info.st_mode)) {
      ::close(fd_);
      throw IoError(display(name_), "not a regular file");
    }
    size_ = static_cast<std::uint64_t>(info.st_size);
    place_ = {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino), 0};
    if (log_level() == LogLevel::debug) log_verbose("opened " + display(name_) + ", " + human_bytes(size_));
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override { ::close(fd_); }

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  std::optional<BytePlace> place() const override { return place_; }

  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size_, name_);
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        throw IoError(display(name_), std::strerror(errno));
      }
      if (got == 0) out_of_range(name_);
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  [[noreturn]] void fail(int error) {
    ::close(fd_);
    throw IoError(display(name_), std::strerror(error));
  }

  int fd_;
  std::string name_;
  std::uint64_t size_ = 0;
  BytePlace place_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::vector<std::byte> bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), bytes_.size(), name_);
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::vector<std::byte> bytes_;
  std::string name_;
};

class SliceSource final : public ByteSource {
 public:
  SliceSource(std::shared_ptr<const ByteSource> parent, std::uint64_t begin, std::uint64_t size)
      : parent_(std::move(parent)), begin_(begin), size_(size) {
    if (begin_ > parent_->size() || size_ > parent_->size() - begin_) out_of_range(parent_->name());
  }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return parent_->name(); }
  std::optional<BytePlace> place() const override {
    auto place = parent_->place();
    if (place) place->offset += begin_;
    return place;
  }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    check_range(offset, out.size(), size_, name());
    parent_->read_at(begin_ + offset, out);
  }

 private:
  std::shared_ptr<const ByteSource> parent_;
  std::uint64_t begin_;
  std::uint64_t size_;
};

bool leaves_directory(const std::string& relative) {
  if (relative.empty() || relative.front() == '/') return true;
  const std::vector<std::string_view> parts = split(relative, "/");
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

// O_NONBLOCK: opening a pipe must not wait for a writer; it has no effect on regular files.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

}  // namespace

void check_range(std::uint64_t offset, std::size_t length, std::uint64_t size, const std::string& name) {
  if (offset > size || length > size - offset) out_of_range(name);
}

std::shared_ptr<const ByteSource> open_file(const std::string& path) {
  const int fd = ::open(path.c_str(), kOpenFlags);
  if (fd < 0) throw IoError(display(path), std::strerror(errno));
  return std::make_shared<FileSource>(fd, path);
}

std::shared_ptr<const ByteSource> open_file_beneath(const std::string& directory,
                                                    const std::string& relative) {
  const std::string path = directory + "/" + relative;
  if (relative.find('\0') != std::string::npos || leaves_directory(relative)) {
    throw FormatError(display(path), "refused: the name leads outside its directory");
  }
  const int dir = ::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (dir < 0) throw IoError(display(path), std::strerror(errno));
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kOpenFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  int error = EAGAIN;
  // While anything is renamed anywhere on the machine, openat2(2) gives up a `..` in a link and asks for
  // another try.
  for (int tries = 0; fd < 0 && error == EAGAIN && tries < 1000; ++tries) {
    fd = ::syscall(SYS_openat2, dir, relative.c_str(), &how, sizeof how);
    error = errno;
  }
  if (fd < 0 && (error == ENOSYS || error == EPERM)) {
    fd = walk_beneath(dir, relative, kOpenFlags);
    error = errno;
  }
  ::close(dir);
  if (fd < 0) {
    if (error == EXDEV)
      throw FormatError(display(path), "refused: a symbolic link leads outside its directory");
    throw IoError(display(path), std::strerror(error));
  }
  return std::make_shared<FileSource>(static_cast<int>(fd), path);
}

std::shared_ptr<const ByteSource> memory_source(std::vector<std::byte> bytes, std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

std::shared_ptr<const ByteSource> memory_source(std::string_view bytes, std::string name) {
  const auto* data = reinterpret_cast<const std::byte*>(bytes.data());
  return memory_source(std::vector<std::byte>(data, data + bytes.size()), std::move(name));
}

std::shared_ptr<const ByteSource> slice_source(std::shared_ptr<const ByteSource> parent, std::uint64_t begin,
                                               std::uint64_t size) {
  return std::make_shared<SliceSource>(std::move(parent), begin, size);
}

std::string read_text(const ByteSource& source, std::uint64_t offset, std::uint64_t size) {
  std::string text(static_cast<std::size_t>(size), '\0');
  source.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

std::string first_bytes(const ByteSource& source, std::uint64_t size) {
  return read_text(source, 0, std::min(size, source.size()));
}

std::string read_all(const ByteSource& source, std::uint64_t limit) {
  if (source.size() > limit) {
    throw FormatError(display(source.name()), "too large: " + std::to_string(source.size()) +
                                                  " bytes, at most " + std::to_string(limit) +
                                                  " are accepted here");
  }
  return read_text(source, 0, source.size());
}

}  // namespace msprobe
