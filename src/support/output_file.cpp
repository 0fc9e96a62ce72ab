// SPDX-License-Identifier: Apache-2.0
#include "support/output_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Where a file named `path` has to be renamed to.
std::string resolve_target(const std::string& path) {
  if (path.empty()) throw IoError("the name of an output file is empty");
  if (path.back() == '/') throw IoError(display(path), "is a directory, not a file to write");
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return path;
  std::string target = path;
  if (S_ISLNK(status.st_mode)) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return path;  // it points nowhere: the file takes the link's place
    target = real.string();
    if (::stat(path.c_str(), &status) != 0) return path;
  }
  if (S_ISDIR(status.st_mode)) throw IoError(display(path), "is a directory, not a file to write");
  if (!S_ISREG(status.st_mode))
    throw IoError(display(path), "is not a regular file, so it cannot be replaced");
  return target;
}

}  // namespace

void create_directories(const std::string& path) {
  if (path.empty()) return;
  fs::path made;
  for (const fs::path& part : fs::path(path)) {
    made /= part;
    if (::mkdir(made.c_str(), 0777) == 0) continue;
    const int error = errno;
    // Asked only now, so that a directory somebody else makes at the same time is no failure.
    struct stat status {};
    if (::stat(made.c_str(), &status) == 0) {
      if (S_ISDIR(status.st_mode)) continue;
      throw IoError(display(made.string()), "is not a directory");
    }
    throw IoError(display(made.string()), "the directory cannot be created: " + reason(error));
  }
}

void check_output(const std::string& path) {
  const OutputFile probe(path);
}

bool write_all(int descriptor, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EPIPE) return false;
    if (errno == EINTR) {
      check_interrupt();
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, 100);
      check_interrupt();
    } else {
      throw IoError(display(name), "cannot be written: " + reason(errno));
    }
  }
  return true;
}

OutputFile::OutputFile(const std::string& path) : path_(path), target_(resolve_target(path)) {
  static std::atomic<unsigned> counter{0};
  const std::string stem = parent_of(target_) + "/.msprobe-" + std::to_string(::getpid()) + "-";
  // Another machine may have our process number on a shared file system, hence the exclusive creation in a
  // loop.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary_ = stem + std::to_string(counter++) + ".tmp";
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ >= 0) return;
    if (errno != EEXIST) break;
  }
  const int error = errno;
  temporary_.clear();
  std::error_code ignored;
  if (error == ENOENT && !fs::exists(parent_of(target_), ignored)) {
    throw IoError(display(path), "cannot be created: there is no directory " + display(parent_of(path)));
  }
  throw IoError(display(path), "cannot be created: " + reason(error));
}

OutputFile OutputFile::unnamed() {
  const char* variable = std::getenv("TMPDIR");
  std::string name =
      std::string(variable != nullptr && *variable != '\0' ? variable : "/tmp") + "/msprobe-XXXXXX";
  OutputFile file;
  file.descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file.descriptor_ < 0)
    throw IoError(display(name), "a temporary file cannot be created: " + reason(errno));
  ::unlink(name.c_str());
  file.path_ = name;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
  discard();
}

void OutputFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::write(std::string_view bytes) {
  if (!write_all(descriptor_, bytes, path_))
    throw IoError(display(path_), "cannot be written: " + reason(EPIPE));
  size_ += bytes.size();
}

void OutputFile::append_from(const std::string& path, std::uint64_t offset, std::uint64_t size) {
  const int source = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) throw IoError(display(path), "cannot be read back: " + reason(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&source, [](const int* d) { ::close(*d); });
  std::vector<char> buffer;
  auto from = static_cast<off_t>(offset);
  while (size > 0) {
    ssize_t copied = -1;
    if (buffer.empty()) {
      // Without a copy in this process, perhaps without any; not every file system can.
      copied = ::copy_file_range(source, &from, descriptor_, nullptr, size, 0);
      if (copied <= 0) buffer.resize(std::size_t{1} << 18);
    }
    if (!buffer.empty()) {
      copied = ::pread(source, buffer.data(), std::min<std::uint64_t>(buffer.size(), size), from);
      if (copied < 0 && errno == EINTR) continue;
      if (copied <= 0) {
        throw IoError(display(path),
                      "cannot be read back: " + (copied < 0 ? reason(errno) : "it is shorter than written"));
      }
      from += copied;
      write(std::string_view(buffer.data(), static_cast<std::size_t>(copied)));
    } else {
      size_ += static_cast<std::uint64_t>(copied);
    }
    size -= static_cast<std::uint64_t>(copied);
  }
}

void OutputFile::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError(display(path_), "cannot be written: " + reason(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void OutputFile::read_at(std::uint64_t offset, std::span<char> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw IoError(display(path_),
                    "cannot be read back: " + (got < 0 ? reason(errno) : "it is shorter than written"));
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

void OutputFile::finish() {
  if (descriptor_ < 0) return;
  // After a failed close the descriptor is gone as well, so it is forgotten first.
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) {
    throw IoError(display(path_), "cannot be written: " + reason(errno));
  }
}

void OutputFile::commit() {
  finish();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw IoError(display(path_), "cannot be put in its place: " + reason(errno));
  }
  temporary_.clear();
}

void OutputFile::commit_all(std::vector<OutputFile>& files) {
  for (OutputFile& file : files) file.finish();
  std::size_t done = 0;
  try {
    for (; done < files.size(); ++done) files[done].commit();
  } catch (...) {
    for (std::size_t i = 0; i < done; ++i) ::unlink(files[i].target_.c_str());
    throw;
  }
}

}  // namespace msprobe
