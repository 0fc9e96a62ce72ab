// SPDX-License-Identifier: Apache-2.0
// Keeps the reason why the last call of a thread failed, in a place that needs no allocation.
#pragma once

namespace msprobe::collector {

void set_last_error(const char* text) noexcept;
const char* last_error() noexcept;

}  // namespace msprobe::collector
