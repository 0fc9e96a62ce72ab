// SPDX-License-Identifier: Apache-2.0
// What of --config had no effect: nobody may take tensors for multiplied that were not.
#pragma once

#include <memory>
#include <string>

#include "compare/imports.hpp"
#include "compare/sinks/sink.hpp"
#include "measuring/tensor_factors.hpp"

namespace msprobe::compare {

/// Tells it in the report. `file` is the file that the factors are from.
std::unique_ptr<Sink> factor_sink(std::shared_ptr<const TensorFactors> factors, const std::string& file);

}  // namespace msprobe::compare
