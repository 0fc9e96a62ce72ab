// SPDX-License-Identifier: Apache-2.0
// Reports factors of --config without effect, so that a reader does not take tensors for multiplied that were
// not.
#pragma once

#include <memory>
#include <string>

#include "compare/sinks/sink.hpp"
#include "measuring/tensor_factors.hpp"

namespace msprobe::compare {

/// Adds these notes to the report. `file` is the file that the factors are from.
std::unique_ptr<Sink> factor_sink(std::shared_ptr<const measuring::TensorFactors> factors,
                                  const std::string& file);

}  // namespace msprobe::compare
