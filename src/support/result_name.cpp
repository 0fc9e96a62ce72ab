// SPDX-License-Identifier: Apache-2.0
#include "support/result_name.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <vector>

#include "support/folder.hpp"
#include "support/output_file.hpp"
#include "support/team.hpp"

namespace msprobe {
namespace {

// If this many names are in use, another name would not help.
constexpr int kMostTries = 3600;

/// Times that this process has reserved by names of sockets. These are no files and disappear with the
/// process however it ends. Other machines that share the folder do not see them.
class Claims {
 public:
  Claims() = default;
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;
  ~Claims() {
    for (const int descriptor : descriptors_) ::close(descriptor);
    for (const std::string& folder : made_) ::rmdir(folder.c_str());  // this fails if results are in it
  }

  /// Makes the folder, which is removed again if it stays empty.
  void make(const std::string& folder) {
    const std::lock_guard lock(mutex_);
    if (path_exists(folder)) return;
    create_directories(folder);
    made_.push_back(folder);
  }

  /// Returns false if another process has it.
  bool take(const std::string& folder, std::string_view name) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) return true;  // the writer of the results reports it
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // A name after a zero byte is no path.
    const std::string claim = fmt::format("msprobe-{:x}-{:x}-{}", status.st_dev, status.st_ino, name);
    claim.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + claim.size());
    const int descriptor = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return true;
    if (::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), size) == 0) {
      const std::lock_guard lock(mutex_);
      descriptors_.push_back(descriptor);
      return true;
    }
    const bool taken = errno == EADDRINUSE;
    ::close(descriptor);
    return !taken;
  }

 private:
  std::mutex mutex_;
  std::vector<int> descriptors_;
  std::vector<std::string> made_;
};

/// True if a name in the folder, or in a folder in it, contains the text.
bool is_in_names(const std::string& folder, std::string_view text) {
  const auto any = [&](const std::vector<std::string>& names) {
    return std::ranges::any_of(names,
                               [&](const std::string& name) { return name.find(text) != std::string::npos; });
  };
  std::error_code error;
  const Listing top = list_folder(folder, error);
  if (any(top.files)) return true;
  return std::ranges::any_of(top.folders, [&](const std::string& name) {
    return name.find(text) != std::string::npos || any(list_folder(folder + "/" + name, error).files);
  });
}

}  // namespace

std::string time_stamp(std::time_t when) {
  return fmt::format("{:%Y%m%d%H%M%S}", fmt::localtime(when));
}

std::string claim_name(const std::string& folder, std::time_t when,
                       const std::function<std::string(std::time_t)>& name_of) {
  static Claims claims;
  claims.make(folder);
  for (int tries = 0; tries < kMostTries; ++tries, ++when) {
    std::string name = name_of(when);
    // The claim comes first: then the names include those of all processes that had it before.
    if (claims.take(folder, name) && !is_in_names(folder, name)) return name;
  }
  return name_of(when);
}

std::string claim_time_stamp(const std::string& folder, std::time_t when) {
  return claim_name(folder, when, time_stamp);
}

std::string result_time(const std::string& folder) {
  std::string own = team().is_root() ? claim_time_stamp(folder, team().begun()) : std::string();
  if (team().processes() == 1) return own;
  // A planned job (--dry-run) has no root.
  const std::vector<std::string> all = team().gather(own);
  const auto claimed = std::ranges::find_if_not(all, &std::string::empty);
  return claimed == all.end() ? time_stamp(team().begun()) : *claimed;
}

}  // namespace msprobe
