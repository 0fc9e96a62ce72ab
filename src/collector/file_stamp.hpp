// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace msprobe::collector {

/// Identifies the state of a file, to notice that it was changed or replaced.
struct FileStamp {
  std::int64_t time = -1;  // ns
  std::int64_t size = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileStamp&) const = default;
};

FileStamp stamp_of(const std::string& path);

}  // namespace msprobe::collector
