// SPDX-License-Identifier: Apache-2.0
// The type Monitor: the training monitor's engine as Python sees it.
#pragma once

#include "python.hpp"

namespace msprobe::python {

PyObject* make_monitor_type();

}  // namespace msprobe::python
