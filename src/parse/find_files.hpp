// SPDX-License-Identifier: Apache-2.0
// Finds the files that an input path means.
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
  bool single = false;               // the user named a single file
  std::vector<std::string> names;    // sorted
  std::vector<RefusedFile> refused;  // links that lead out of the folder, pipes and the like
  std::vector<std::string> skipped;  // files whose extension shows that they are not dumps
  std::set<std::pair<std::uint64_t, std::uint64_t>> identities;  // device and inode of each
  /// The Hugging Face cache of which the root is a snapshot, and the names that are links to its blobs.
  std::string cache;
  std::map<std::string, std::string> blobs;

  std::string path(const std::string& name) const;
  /// Opens one of the names, or another file below the root. Symbolic links that lead out of the root or the
  /// cache are refused.
  std::shared_ptr<const ByteSource> open(const std::string& name) const;
};

/// The files of a folder (with its subfolders if `recursive`), or the single file. Links to files inside the
/// folder are followed; folders behind links are not searched, since their files are found under their own
/// names. `output` is left out if it is inside. IoError if the path does not exist or has no file.
InputFiles find_files(const std::string& path, bool recursive, const std::string& output);

}  // namespace msprobe::parse
