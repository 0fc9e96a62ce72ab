// SPDX-License-Identifier: Apache-2.0
// A dump with checksums with which a running training is compared: the tensors of an entry are saved if one
// of them differs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace msprobe::collector {

/// A tensor of an entry.
struct SeenTensor {
  std::string path;  // "input_args.0", "output.1.key"
  std::string md5;
};

class Bench {
 public:
  /// Reads dump.json of the reference's folder for `step`/`leaf`. "rank0" needs a folder of that name.
  /// Process numbers differ between runs, so "proc123" takes the only folder proc<N> of the reference,
  /// whatever N is. Throws IoError and FormatError.
  Bench(const std::string& path, const std::string& step, const std::string& leaf);

  /// True if a tensor of the entry has another checksum than the reference has at its place.
  bool differs(const std::string& entry, const std::vector<SeenTensor>& seen) const;

 private:
  using Checksums = std::unordered_map<std::string, std::string>;  // by path
  std::unordered_map<std::string, Checksums> entries_;
};

}  // namespace msprobe::collector
