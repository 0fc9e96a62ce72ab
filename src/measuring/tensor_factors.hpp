// SPDX-License-Identifier: Apache-2.0
// Matrices that some tensors are multiplied by before they are compared, as a file says that names tensors by
// their data files: values before and after a quantization have one scale then.
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
#include "measuring/imports.hpp"
#include "support/rule_file.hpp"

namespace msprobe::measuring {

enum class FactorSide : std::uint8_t { target, golden };

class TensorFactors {
 public:
  /// FormatError naming file and line where it is no YAML of the form that it has to have. Keys and values
  /// that mean nothing have no effect, and are remarks.
  explicit TensorFactors(const RuleFile& file);

  struct Factor {
    bool on_the_left = false;
    std::string matrix;  // its file
  };
  struct Named {
    FactorSide side = FactorSide::target;
    std::string data_name;
    std::vector<Factor> factors;  // in the order in which they are applied
  };

  const std::vector<Named>& all() const { return all_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  /// Its place in all(); nothing for a tensor that stays as it is.
  std::optional<std::size_t> find(FactorSide side, std::string_view data_name) const;

 private:
  class Reader;

  std::vector<Named> all_;
  std::array<std::unordered_map<std::string, std::size_t>, 2> places_;  // by side
  std::vector<std::string> remarks_;
};

/// What was done to a tensor and what could not be.
struct FactorNotes {
  std::vector<std::string> messages;
  std::vector<std::string> failures;  // matrix and reason
};

/// The tensor times its factors; one that cannot be applied leaves it as it is, and is reported. Elements
/// whose first index is not below `valid_rows` are 0 before; it is reset where that was done.
formats::StoredTensor multiplied(const formats::StoredTensor& tensor, const TensorFactors::Named& named,
                                 std::optional<std::int64_t>& valid_rows, FactorNotes& notes);

}  // namespace msprobe::measuring
