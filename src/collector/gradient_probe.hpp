// SPDX-License-Identifier: Apache-2.0
// Task grad_probe: what the gradients of parameters are at each step of an optimizer, as one table a step
// (`grad_summary_<step>.csv`) and, from level L1 on, the signs of their elements
// (`step<step>/<parameter>.npy`). Files and columns are those of the Python tool 8.1.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"
#include "support/error.hpp"

namespace msprobe::collector {

enum class GradientLevel : std::uint8_t { l0, l1, l2 };

/// The end of an interval of values, as a number and as the configuration spells it.
struct Bound {
  double value = 0;
  std::string text;
};

struct GradientProbeConfig {
  GradientLevel level = GradientLevel::l1;
  std::vector<std::string> parameters;  // empty: all
  std::vector<Bound> bounds;            // ascending
  bool takes(std::string_view parameter) const;
};

/// Of the section. FormatError that names `where`, the key and what would be right.
GradientProbeConfig read_gradient_probe(const nlohmann::ordered_json& section, const std::string& where);

/// The table of one step in the making.
class GradientProbe {
 public:
  /// A row of a step, and the file of the signs. `folder` is that of the rank; it is made. IoError.
  void add(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
           std::string_view parameter, const TensorView& gradient);
  /// Writes the table of the step, if there is one. IoError; the table is gone then, too.
  void finish();

  std::uint64_t gradients() const { return kept() + lost_; }
  /// Those of them that are in a table, be it one in the making.
  std::uint64_t kept() const { return gradients_ + rows_; }
  /// Those that could not be written, and why the first could not.
  std::uint64_t lost() const { return lost_; }
  const std::string& reason() const { return reason_; }
  std::uint64_t steps() const { return steps_; }

 private:
  void append(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
              std::string_view parameter, const TensorView& gradient);
  void lose(std::uint64_t gradients, const Error& error);

  std::string path_;  // of the table; empty: there is none
  std::string text_;
  std::uint64_t rows_ = 0;       // of the table
  std::uint64_t gradients_ = 0;  // of all tables before
  std::uint64_t lost_ = 0;
  std::uint64_t steps_ = 0;
  std::string reason_;
};

}  // namespace msprobe::collector
