// SPDX-License-Identifier: Apache-2.0
// Tensors on a CUDA device, measured there by the collector's kernel.
#pragma once

#include "python.hpp"

namespace msprobe::python {

PyObject* gpu_open(PyObject*, PyObject* arguments);
PyObject* gpu_takes(PyObject*, PyObject* arguments);
PyObject* gpu_measure(PyObject*, PyObject* arguments);
PyObject* gpu_drain(PyObject*, PyObject* handle);

}  // namespace msprobe::python
