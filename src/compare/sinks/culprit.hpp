// SPDX-License-Identifier: Apache-2.0
// The diagnosis of all tasks together: where it first goes wrong. Ahead of outputs that tell it.
#pragma once

#include <memory>

#include "compare/rules/rules.hpp"
#include "compare/sinks/sink.hpp"

namespace msprobe::compare {

/// Fills CompareReport::diagnosis. `rules` must outlive the sink.
std::unique_ptr<Sink> culprit_sink(const Rules& rules);

}  // namespace msprobe::compare
