// SPDX-License-Identifier: Apache-2.0
// Makes names of results from the time, which no other run uses.
#pragma once

#include <ctime>
#include <functional>
#include <string>

namespace msprobe {

/// The local time in the form of result names: 20260731235959.
std::string time_stamp(std::time_t when = std::time(nullptr));

/// Returns `name_of` of the first time from `when` on that is free: no name in `folder`, or in a folder in
/// it, contains it, and no other process has claimed it. Keeps it from others until this process ends, so
/// that two runs in the same second write separate files, under names of the usual form. Creates the folder
/// if it is missing, and removes it again if it is empty at the end.
std::string claim_name(const std::string& folder, std::time_t when,
                       const std::function<std::string(std::time_t)>& name_of);

/// The same for time_stamp().
std::string claim_time_stamp(const std::string& folder, std::time_t when = std::time(nullptr));

/// The time for names of results that this run writes to `folder`. The root claims it, from the begin of the
/// run on. All processes of a job must call this.
std::string result_time(const std::string& folder);

}  // namespace msprobe
