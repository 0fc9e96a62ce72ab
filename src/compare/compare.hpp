// SPDX-License-Identifier: Apache-2.0
// `msprobe compare` without its command line: a plan of tasks, which give their rows to every output.
#pragma once

#include "compare/options.hpp"
#include "compare/sinks/sink.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// Does it all. A task that fails is reported in its summary and does not stop the others.
CompareReport compare(const CompareOptions& options, Progress* progress);

}  // namespace msprobe::compare
