// SPDX-License-Identifier: Apache-2.0
// Tensors on a GPU, measured there by the collector's kernel: all of a call by one launch.
#pragma once

#include "msprobe/collector.h"
#include "python.hpp"

namespace msprobe::python {

PyObject* gpu_compile(PyObject*, PyObject* arguments);
PyObject* gpu_open(PyObject*, PyObject* arguments);
PyObject* gpu_takes(PyObject*, PyObject* tensor);
PyObject* gpu_drain(PyObject*, PyObject*);

/// Whether tensors on any GPU are measured by the kernel.
bool knows_gpus();
/// The ordinal of the GPU whose kernel makes all that is wanted of this tensor, whose elements are on a
/// device; -1 if none does. No exception is pending.
int gpu_for(PyObject* object, const msprobe_tensor& tensor);
/// Adds a tensor for which gpu_for() gave that GPU. It is measured when measure_on_gpus() is called.
void add_on_gpu(msprobe_builder* builder, const char* key, PyObject* object, msprobe_tensor tensor,
                int ordinal);
/// Starts to measure what this thread has added, after what is on the current streams now: before the
/// training goes on. No other thread may do it, it could be late.
void measure_on_gpus();

}  // namespace msprobe::python
