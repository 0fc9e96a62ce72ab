// SPDX-License-Identifier: Apache-2.0
// A dump with checksums that a run is held against while it goes on: tensors are saved where an output
// differs although all inputs are the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::collector {

/// A tensor that stands directly in input_args or output.
struct SeenTensor {
  bool output = false;
  std::uint64_t index = 0;
  std::string md5;
  std::vector<std::int64_t> shape;
};

class Bench {
 public:
  /// Reads dump.json of the folder that belongs to `step`/`leaf` ("rank0", or "proc123": then there must be
  /// one such folder). IoError, FormatError.
  Bench(const std::string& path, const std::string& step, const std::string& leaf);

  /// Does an output of the call differ from the reference, of the same shape, while all inputs are the same?
  bool differs(const std::string& entry, const std::vector<SeenTensor>& seen) const;

 private:
  struct Tensor {
    std::string md5;
    std::vector<std::int64_t> shape;
  };
  struct Reference {
    std::unordered_map<std::uint64_t, Tensor> inputs;
    std::unordered_map<std::uint64_t, Tensor> outputs;
  };
  std::unordered_map<std::string, Reference> entries_;
};

}  // namespace msprobe::collector
