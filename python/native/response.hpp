// SPDX-License-Identifier: Apache-2.0
// Answers of language models as Python has them.
#pragma once

#include "python.hpp"

namespace msprobe::python {

PyObject* judge_response(PyObject*, PyObject* arguments);

}  // namespace msprobe::python
