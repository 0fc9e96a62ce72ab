// SPDX-License-Identifier: Apache-2.0
#include "collector/file_stamp.hpp"

#include <sys/stat.h>

namespace msprobe::collector {

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size, status.st_ino};
}

}  // namespace msprobe::collector
