// SPDX-License-Identifier: Apache-2.0
// A training that has started this process: messages through a pipe, tensors through memory that both share.
#pragma once

#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// Takes messages, a line of JSON each, from a descriptor until they end; the first one has the settings.
/// Returns false if it cannot do what they ask for, which the training reports. Throws Error if it cannot
/// even reply that, Interrupted. data/precheck/PROTOCOL.md describes the messages.
bool judge_child_of_training(int messages, const Standards& standards, bool color);

}  // namespace msprobe::precheck
