// SPDX-License-Identifier: Apache-2.0
// Matrices by which some tensors are multiplied before they are compared. A file lists them by the tensors'
// data files. Values before and after a quantization then have one scale.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/stored_tensor.hpp"
#include "support/rule_file.hpp"

namespace msprobe::measuring {

enum class FactorSide : std::uint8_t { target, golden };

class TensorFactors {
 public:
  /// FormatError naming file and line if the YAML does not have the required form. Keys and values without a
  /// meaning have no effect, and are remarked on.
  explicit TensorFactors(const RuleFile& file);

  struct Factor {
    bool on_the_left = false;
    std::string matrix;  // the file of the matrix
  };
  struct FactoredTensor {
    FactorSide side = FactorSide::target;
    std::string data_name;
    std::vector<Factor> factors;  // in the order of multiplication
  };

  const std::vector<FactoredTensor>& all() const { return all_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// The index in all(); nothing for a tensor without factors.
  std::optional<std::size_t> find(FactorSide side, std::string_view data_name) const;

 private:
  class Reader;

  std::vector<FactoredTensor> all_;
  std::array<std::unordered_map<std::string, std::size_t>, 2> places_;  // by side
  std::vector<std::string> remarks_;
};

/// The multiplications of a tensor that were done, and those that failed.
struct FactorNotes {
  std::vector<std::string> messages;
  std::vector<std::string> failures;  // matrix and reason
};

/// The tensor times its factors; a factor that cannot be applied is skipped and reported. If `valid_rows` is
/// set, elements whose first index is not below it are set to 0 first, and `valid_rows` is reset.
formats::StoredTensor multiplied(const formats::StoredTensor& tensor,
                                 const TensorFactors::FactoredTensor& named,
                                 std::optional<std::int64_t>& valid_rows, FactorNotes& notes);

}  // namespace msprobe::measuring
