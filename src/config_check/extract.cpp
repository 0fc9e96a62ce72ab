// SPDX-License-Identifier: Apache-2.0
#include "config_check/extract.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "support/descriptor.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

constexpr int kMostLevels = 16;  // of folders that are emptied

[[noreturn]] void fail(const std::string& path) {
  const int code = errno;
  throw IoError(display(path), code == ELOOP || code == ENOTDIR
                                   ? "a link or a file is in the place of a folder"
                                   : std::strerror(code));
}

/// An open folder.
class Folder {
 public:
  Folder(int parent, const std::string& name, const std::string& path)
      : path_(path),
        descriptor_(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (descriptor() < 0) fail(path_);
  }

  int descriptor() const { return descriptor_.get(); }
  const std::string& path() const { return path_; }

  Folder below(const std::string& name) const {
    const std::string path = path_ + "/" + name;
    if (::mkdirat(descriptor(), name.c_str(), 0755) != 0 && errno != EEXIST) fail(path);
    return {descriptor(), name, path};
  }
  std::vector<std::string> names() const {
    const int copy = ::dup(descriptor());
    DIR* const stream = copy < 0 ? nullptr : ::fdopendir(copy);
    if (stream == nullptr) {
      if (copy >= 0) ::close(copy);
      fail(path_);
    }
    ::rewinddir(stream);
    std::vector<std::string> names;
    while (const dirent* const entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(stream);
    return names;
  }

 private:
  std::string path_;
  Descriptor descriptor_;
};

bool is_folder(const Folder& folder, const std::string& name) {
  struct stat status {};
  return ::fstatat(folder.descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

/// Removes the files of a folder that a pack could have left, and all folders that are empty then.
void clear(const Folder& parent, const std::string& folder, int level) {
  check_interrupt();
  {
    const Folder inner(parent.descriptor(), folder, parent.path() + "/" + folder);
    for (const std::string& name : inner.names()) {
      if (is_folder(inner, name)) {
        if (level < kMostLevels) clear(inner, name, level + 1);
      } else if (name.ends_with(".json")) {
        ::unlinkat(inner.descriptor(), name.c_str(), 0);
      }
    }
  }
  ::unlinkat(parent.descriptor(), folder.c_str(), AT_REMOVEDIR);  // fails if something is left, rightly
}

void write_file(const Folder& folder, const std::string& name, std::string_view text) {
  const std::string path = folder.path() + "/" + name;
  if (::unlinkat(folder.descriptor(), name.c_str(), 0) != 0 && errno != ENOENT) fail(path);
  OutputFile file = OutputFile::in_folder(folder.descriptor(), name, path);
  file.write(text);
  file.commit();
}

void write_member(const Folder& root, const std::string& member, std::string_view text) {
  const std::size_t slash = member.find('/');
  if (slash == std::string::npos) {
    write_file(root, member, text);
  } else {
    write_member(root.below(member.substr(0, slash)), member.substr(slash + 1), text);
  }
}

}  // namespace

void extract(const pack::Pack& pack, const std::string& folder) {
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) fail(folder);
  const Folder root(AT_FDCWD, folder, folder);
  for (const char* name : {"env", "pip"}) {
    if (!is_folder(root, name)) ::unlinkat(root.descriptor(), name, 0);
  }
  for (const pack::Section section : pack::kSections) {
    const std::string name(pack::name_of(section));
    if (is_folder(root, name)) clear(root, name, 0);
  }
  for (const pack::Section section : pack::kSections) {
    for (const pack::PackMember& member : pack.members(section)) {
      check_interrupt();
      write_member(root, member.name, pack.read(member));
    }
  }
}

}  // namespace msprobe::config_check
