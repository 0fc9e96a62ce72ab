// SPDX-License-Identifier: Apache-2.0
// Task grad_probe: records the gradients of parameters at each step of an optimizer, as one table per step
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
struct IntervalEnd {
  double value = 0;
  std::string text;
};

struct GradientProbeConfig {
  GradientLevel level = GradientLevel::l1;
  std::vector<std::string> parameters;  // empty: all
  std::vector<IntervalEnd> bounds;      // ascending
  bool takes(std::string_view parameter) const;
};

/// Reads the section. Throws FormatError with `where`, the key and the right values.
GradientProbeConfig read_gradient_probe(const nlohmann::ordered_json& section, const std::string& where);

/// The table of the current step.
class GradientProbe {
 public:
  /// Adds a row for a step, and writes the file of the signs. `folder` is that of the rank, which is created.
  /// Throws IoError.
  void add(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
           std::string_view parameter, const TensorView& gradient);
  /// Writes the table of the step, if there is one. Throws IoError; the table is lost then, too.
  void finish();

  std::uint64_t gradients() const { return kept() + lost_; }
  /// The number of gradients in a table, including the current one.
  std::uint64_t kept() const { return gradients_ + rows_; }
  /// The number of gradients that could not be written, and the reason of the first failure.
  std::uint64_t lost() const { return lost_; }
  const std::string& reason() const { return reason_; }
  std::uint64_t steps() const { return steps_; }

 private:
  void append(const GradientProbeConfig& config, const std::string& folder, std::uint64_t step,
              std::string_view parameter, const TensorView& gradient);
  void lose(std::uint64_t gradients, const Error& error);

  std::string path_;  // of the table; empty without a table
  std::string text_;
  std::uint64_t rows_ = 0;       // of the table
  std::uint64_t gradients_ = 0;  // of all tables before
  std::uint64_t lost_ = 0;
  std::uint64_t steps_ = 0;
  std::string reason_;
};

}  // namespace msprobe::collector
