// SPDX-License-Identifier: Apache-2.0
// The tasks of a plan as units of work: chains of tasks, and, before these, parts of tasks that are too large
// for one of many processes.
#pragma once

#include "compare/sinks/sink.hpp"
#include "compare/task.hpp"

namespace msprobe::compare {

/// Runs all tasks and gives each to all sinks. The root then has all that the sinks keep. The report has room
/// for all tasks. `progress` may be null.
void run_tasks(const TaskPlan& plan, const Sinks& sinks, CompareReport& report, Progress* progress);

}  // namespace msprobe::compare
