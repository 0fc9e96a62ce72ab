// SPDX-License-Identifier: Apache-2.0
// Names of results: with the time, and such as no other run takes.
#pragma once

#include <ctime>
#include <functional>
#include <string>

namespace msprobe {

/// Local time as names of results have it: 20260731235959.
std::string time_stamp(std::time_t when = std::time(nullptr));

/// What `name_of` makes of the first time from `when` on such that no name in `folder`, or in a folder in it,
/// has it, and no other process has claimed it for results in it; kept from others until this process ends.
/// So two runs of one second write files of their own, under names of the usual form. The folder is made
/// where it is missing, and removed again if it is empty then.
std::string claim_name(const std::string& folder, std::time_t when,
                       const std::function<std::string(std::time_t)>& name_of);

/// The same for time_stamp().
std::string claim_time_stamp(const std::string& folder, std::time_t when = std::time(nullptr));

/// The time for names of results that this run writes to `folder`, which its root claims: from the begin of
/// the run on. All processes of a job have to ask for it.
std::string result_time(const std::string& folder);

}  // namespace msprobe
