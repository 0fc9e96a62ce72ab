// SPDX-License-Identifier: Apache-2.0
// Judges the calls that a running training sends (task acc_check of the recorder): as those of a dump, each
// from its own inputs.
#pragma once

#include <cstdint>

#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// Takes messages, a line of JSON each, from a descriptor until it ends; the first one says what is asked
/// for. False if that cannot be done, which the training tells. Throws Error if it cannot be told,
/// Interrupted. data/precheck/PROTOCOL.md describes the messages.
bool judge_online(int messages, const Standards& standards, bool color);

}  // namespace msprobe::precheck
