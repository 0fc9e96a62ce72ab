// SPDX-License-Identifier: Apache-2.0
// Which files an input path stands for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::parse {

struct RefusedFile {
  std::string name;
  std::string reason;
};

struct InputFiles {
  std::string root;                  // the folder that all names are below
  bool single = false;               // one file was named
  std::vector<std::string> names;    // sorted
  std::vector<RefusedFile> refused;  // links that lead out of the folder, pipes and the like
  std::vector<std::string> skipped;  // files whose ending says that they are no dumps
  std::set<std::pair<std::uint64_t, std::uint64_t>> identities;  // device and inode of each
  /// Names that are links to blobs of the cache that the root is a snapshot of, by that cache.
  std::string cache;
  std::map<std::string, std::string> blobs;

  std::string path(const std::string& name) const;
  /// Opens one of the names, or another file below the root. No symbolic link leads out of it, or of the
  /// cache.
  std::shared_ptr<const ByteSource> open(const std::string& name) const;
};

/// The files of a folder (below it too if `recursive`), or the one file. Links to files inside the folder are
/// followed; folders behind links are not searched, since what lies inside is found under its own name.
/// `output` is left out where it lies inside. IoError if there is no such path, or no file.
InputFiles find_files(const std::string& path, bool recursive, const std::string& output);

}  // namespace msprobe::parse
