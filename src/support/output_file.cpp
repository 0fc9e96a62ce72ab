// SPDX-License-Identifier: Apache-2.0
#include "support/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/crc32.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

// Small pieces are collected before writing: a file of a small tensor consists of about thirty.
constexpr std::size_t kHeldBack = std::size_t{64} << 10;

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// The start of the names of all temporary files of this machine. Other machines may write into the same
/// folder of a shared file system, and it is impossible to see here whether their processes still live.
std::string temporary_start() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::span<const char> name(host.data(), std::strlen(host.data()));
  return fmt::format(".msprobe-{:08x}-", crc32(0, std::as_bytes(name)));
}

std::string temporary_name(const std::string& folder) {
  static std::atomic<unsigned> counter{0};
  return fmt::format("{}/{}{}-{}.tmp", folder, temporary_start(), ::getpid(), counter++);
}

/// Removes temporary files whose process has ended: it held a lock on them. Runs once per folder, because a
/// folder may have many files.
void remove_stale(const std::string& folder) {
  static std::mutex mutex;
  static std::set<std::pair<dev_t, ino_t>> seen;
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return;
  {
    const std::lock_guard lock(mutex);
    if (!seen.emplace(status.st_dev, status.st_ino).second) return;
  }
  const std::string start = temporary_start();
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".tmp")) continue;
    const int descriptor = ::open(entry->path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
}

/// The path that leads to a file without a name.
std::string link_of(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

/// Links such as /dev/stdout lead to open files of a process, and belong to the system.
bool is_of_the_system(const std::string& link) {
  std::error_code error;
  const std::string folder = fs::canonical(parent_of(link), error).string();
  return folder == "/dev" || folder.starts_with("/proc/");
}

[[noreturn]] void refuse_existing(const std::string& path) {
  throw UsageError(display(path) + " already exists", "choose another name, or replace it with --overwrite");
}

/// Rejects a target that cannot, or must not, be replaced by a file.
void check_target(const std::string& path, Existing existing) {
  if (path.empty()) throw IoError("the name of an output file is empty");
  if (path.back() == '/') throw IoError(display(path), "is a directory, not a file to write");
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;
  const bool link = S_ISLNK(status.st_mode);
  const bool dangling = link && ::stat(path.c_str(), &status) != 0;
  if (S_ISDIR(status.st_mode)) throw IoError(display(path), "is a directory, not a file to write");
  if ((!dangling && !S_ISREG(status.st_mode)) || (link && is_of_the_system(path)))
    throw IoError(display(path), "is not a regular file, so it cannot be replaced");
  if (existing == Existing::refuse) refuse_existing(path);
}

}  // namespace

void create_directories(const std::string& path) {
  if (path.empty()) return;
  fs::path made;
  for (const fs::path& part : fs::path(path)) {
    made /= part;
    if (::mkdir(made.c_str(), 0777) == 0) continue;
    const int error = errno;
    // Checked only now, so that it is no failure if another process makes the directory at the same time.
    struct stat status {};
    if (::stat(made.c_str(), &status) == 0) {
      if (S_ISDIR(status.st_mode)) continue;
      throw IoError(display(made.string()), "is not a directory");
    }
    if (error == EEXIST) throw IoError(display(made.string()), "is a dangling symbolic link");
    throw IoError(display(made.string()), "the directory cannot be created: " + reason(error));
  }
}

void check_output(const std::string& path, Existing existing) {
  const OutputFile probe(path, existing);
}

void prepare_output(const std::string& path, Existing existing) {
  create_directories(fs::path(path).parent_path().string());
  check_output(path, existing);
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

Linked link_file(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return Linked::yes;
  if (errno == EEXIST) {
    const std::string name = temporary_name(parent_of(to));
    if (::link(from.c_str(), name.c_str()) == 0) {
      const bool renamed = ::rename(name.c_str(), to.c_str()) == 0;
      // rename() leaves both names if they are of one file.
      ::unlink(name.c_str());
      return renamed ? Linked::yes : Linked::refused;
    }
  }
  return errno == EMLINK ? Linked::too_many : Linked::refused;
}

void copy_file(const std::string& from, const std::string& to) {
  struct stat status {};
  if (::stat(from.c_str(), &status) != 0)
    throw IoError(display(from), "cannot be read back: " + reason(errno));
  OutputFile file(to);
  file.append_from(from, 0, static_cast<std::uint64_t>(status.st_size));
  file.commit();
}

OutputFile::OutputFile(const std::string& path, Existing existing)
    : path_(path), target_(path), existing_(existing) {
  check_target(path, existing);
  open();
}

OutputFile OutputFile::in_folder(int folder, const std::string& name, const std::string& path) {
  OutputFile file;
  file.path_ = path;
  file.target_ = link_of(folder) + "/" + name;
  file.open();
  return file;
}

void OutputFile::open() {
  if (!open_nameless()) open_named();
}

/// Returns false if the file system has no files without a name, or could not name such a file later.
bool OutputFile::open_nameless() {
  descriptor_ = ::open(parent_of(target_).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return false;
  if (::access(link_of(descriptor_).c_str(), F_OK) == 0) return true;
  ::close(std::exchange(descriptor_, -1));
  return false;
}

void OutputFile::open_named() {
  const std::string folder = parent_of(target_);
  remove_stale(folder);
  // The lock shows other processes that this one lives. Until it was taken, another process may have removed
  // the file, which the link count shows.
  for (int attempt = 0; attempt < 1000; ++attempt) {
    temporary_ = temporary_name(folder);
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0) {
      if (errno == EEXIST) continue;
      break;
    }
    ::flock(descriptor_, LOCK_EX);
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && status.st_nlink > 0) return;
    ::close(std::exchange(descriptor_, -1));
  }
  const int error = errno;
  temporary_.clear();
  if (error == ENOENT && !path_exists(folder)) {
    throw IoError(display(path_), "cannot be created: no directory " + display(parent_of(path_)));
  }
  throw IoError(display(path_), "cannot be created: " + reason(error));
}

OutputFile OutputFile::unnamed(std::string folder) {
  if (folder.empty()) {
    const char* variable = std::getenv("TMPDIR");
    folder = variable != nullptr && *variable != '\0' ? variable : "/tmp";
  }
  std::string name = folder + "/msprobe-XXXXXX";
  OutputFile file;
  file.descriptor_ = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (file.descriptor_ < 0) {
    file.descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (file.descriptor_ < 0)
      throw IoError(display(name), "a temporary file cannot be created: " + reason(errno));
    ::unlink(name.c_str());
  }
  file.path_ = name;
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      existing_(other.existing_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

OutputFile::~OutputFile() {
  discard();
}

void OutputFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
}

void OutputFile::write(std::string_view bytes) {
  if (bytes.size() > kHeldBack - buffer_.size()) flush();
  size_ += bytes.size();
  if (bytes.size() <= kHeldBack - buffer_.size()) {
    buffer_ += bytes;
  } else if (!write_all(descriptor_, bytes, path_)) {
    throw IoError(display(path_), "cannot be written: " + reason(EPIPE));
  }
}

void OutputFile::flush() {
  if (buffer_.empty()) return;
  if (!write_all(descriptor_, buffer_, path_))
    throw IoError(display(path_), "cannot be written: " + reason(EPIPE));
  buffer_.clear();
}

void OutputFile::append_from(const std::string& path, std::uint64_t offset, std::uint64_t size) {
  const int source = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (source < 0) throw IoError(display(path), "cannot be read back: " + reason(errno));
  const std::unique_ptr<const int, void (*)(const int*)> closer(&source, [](const int* d) { ::close(*d); });
  append_from(source, path, offset, size);
}

void OutputFile::append_from(int source, const std::string& path, std::uint64_t offset, std::uint64_t size) {
  flush();
  std::vector<char> buffer;
  auto from = static_cast<off_t>(offset);
  while (size > 0) {
    ssize_t copied = -1;
    if (buffer.empty()) {
      // The system copies without a buffer in this process, perhaps without any copy; not every file system
      // can.
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
  flush();
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw IoError(display(path_), "cannot be written: " + reason(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

void OutputFile::read_at(std::uint64_t offset, std::span<char> out) {
  flush();
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
  flush();
  // Closing the file's own descriptor would remove a nameless file, or unlock a named one, so a duplicate is
  // closed in its place.
  const int second = ::dup(descriptor_);
  if (second < 0 || (::close(second) != 0 && errno != EINTR)) {
    throw IoError(display(path_), "cannot be written: " + reason(errno));
  }
}

void OutputFile::commit() {
  finish();
  if (!temporary_.empty() || !link_to_target()) {
    if (existing_ == Existing::refuse) check_target(target_, existing_);
    if (::rename(temporary_.c_str(), target_.c_str()) != 0)
      throw IoError(display(path_), "cannot be renamed into place: " + reason(errno));
    temporary_.clear();
  }
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

/// A link does not replace an existing file. In this case gives the file a temporary name and returns false.
bool OutputFile::link_to_target() {
  const std::string self = link_of(descriptor_);
  const auto link_to = [&](const std::string& name) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (link_to(target_)) return true;
  const std::string folder = parent_of(target_);
  if (errno == EEXIST) {
    remove_stale(folder);
    ::flock(descriptor_, LOCK_EX);
    do {
      temporary_ = temporary_name(folder);
      if (link_to(temporary_)) return false;
    } while (errno == EEXIST);
    temporary_.clear();
  }
  copy_to_named();
  return false;
}

/// Some file systems make nameless files but cannot name them. The file is copied, so that hours of work are
/// not lost.
void OutputFile::copy_to_named() {
  OutputFile copy;
  copy.path_ = path_;
  copy.target_ = target_;
  copy.open_named();
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0)
    throw IoError(display(path_), "cannot be read back: " + reason(errno));
  copy.append_from(descriptor_, path_, 0, static_cast<std::uint64_t>(status.st_size));
  copy.finish();
  std::swap(descriptor_, copy.descriptor_);
  temporary_ = std::exchange(copy.temporary_, {});
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
