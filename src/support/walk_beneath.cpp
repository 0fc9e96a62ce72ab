// SPDX-License-Identifier: Apache-2.0
#include "support/walk_beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/descriptor.hpp"

namespace msprobe {
namespace {

constexpr int kMostLinks = 40;             // the kernel's own limit
constexpr std::size_t kMostFolders = 256;  // each takes a descriptor

class PathWalk {
 public:
  explicit PathWalk(int root) : root_(root) {}

  int open(std::string_view relative, int flags) {
    if (!queue(relative)) return -1;
    while (!left_.empty()) {
      const std::string component = std::move(left_.back());
      left_.pop_back();
      if (component.empty() || component == ".") continue;
      if (component == "..") {
        if (folders_.empty()) return fail(EXDEV);
        folders_.pop_back();
        continue;
      }
      Descriptor found(::openat(here(), component.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      struct stat status {};
      if (found.get() < 0 || ::fstat(found.get(), &status) != 0) return -1;
      if (S_ISLNK(status.st_mode)) {
        if (!follow(found.get())) return -1;
      } else if (left_.empty()) {
        return ::openat(here(), component.c_str(), flags | O_NOFOLLOW);
      } else {
        if (!S_ISDIR(status.st_mode)) return fail(ENOTDIR);
        if (folders_.size() == kMostFolders) return fail(ENAMETOOLONG);
        folders_.push_back(std::move(found));
      }
    }
    return ::openat(here(), ".", flags);
  }

 private:
  static int fail(int error) {
    errno = error;
    return -1;
  }

  int here() const { return folders_.empty() ? root_ : folders_.back().get(); }

  /// Puts the components of a path before those that are left; the first one goes last.
  bool queue(std::string_view path) {
    if (path.empty() || path.front() == '/') {
      errno = EXDEV;
      return false;
    }
    while (true) {
      const std::size_t slash = path.rfind('/');
      left_.emplace_back(path.substr(slash == std::string_view::npos ? 0 : slash + 1));
      if (slash == std::string_view::npos) return true;
      path = path.substr(0, slash);
    }
  }

  bool follow(int link) {
    if (++links_ > kMostLinks) {
      errno = ELOOP;
      return false;
    }
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(link, "", target.data(), target.size());
    if (length < 0) return false;
    return queue({target.data(), static_cast<std::size_t>(length)});
  }

  int root_;
  std::vector<Descriptor> folders_;  // below the root, down to the current folder
  std::vector<std::string> left_;    // components, the next one last
  int links_ = 0;
};

}  // namespace

int walk_beneath(int folder, const std::string& relative, int flags) {
  return PathWalk(folder).open(relative, flags);
}

}  // namespace msprobe
