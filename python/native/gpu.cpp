// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <deque>
#include <vector>

#include "msprobe/device.h"
#include "state.hpp"
#include "tensors.hpp"

namespace msprobe::python {
namespace {

void* as_pointer(unsigned long long number) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(number));
}

// Fills what a tuple (address, number of the dtype, shape, strides, whether the sign is the other one) says.
bool read_tensor(PyObject* tuple, Geometry* geometry, msprobe_tensor* tensor) {
  unsigned long long address = 0;
  unsigned int dtype = 0;
  PyObject* shape = nullptr;
  PyObject* strides = nullptr;
  int negative = 0;
  if (PyArg_ParseTuple(tuple, "KIOOp", &address, &dtype, &shape, &strides, &negative) == 0) return false;
  size_t ndim = 0;
  size_t count = 0;
  if (!read_numbers(shape, geometry->shape, &ndim) || !read_numbers(strides, geometry->strides, &count) ||
      ndim != count) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "a tensor has no shape or strides");
    return false;
  }
  *tensor = msprobe_tensor{};
  tensor->struct_size = sizeof(msprobe_tensor);
  tensor->data = as_pointer(address);
  tensor->shape = geometry->shape;
  tensor->strides = geometry->strides;
  tensor->ndim = static_cast<uint32_t>(ndim);
  tensor->dtype = dtype;
  if (negative != 0) tensor->flags |= MSPROBE_TENSOR_NEG;
  return true;
}

}  // namespace

PyObject* gpu_open(PyObject*, PyObject* arguments) {
  const char* driver = nullptr;
  const char* compiler = nullptr;
  int ordinal = 0;
  if (PyArg_ParseTuple(arguments, "zsi", &driver, &compiler, &ordinal) == 0) return nullptr;
  msprobe_gpu* gpu = nullptr;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = msprobe_gpu_open(driver, compiler, ordinal, &gpu);
  PyEval_RestoreThread(thread);
  if (status != MSPROBE_OK) return raise_status(status);
  return PyLong_FromVoidPtr(gpu);
}

PyObject* gpu_takes(PyObject*, PyObject* arguments) {
  Geometry geometry;
  msprobe_tensor tensor;
  if (!read_tensor(arguments, &geometry, &tensor)) return nullptr;
  return PyBool_FromLong(msprobe_gpu_takes(&tensor) == MSPROBE_OK ? 1 : 0);
}

PyObject* gpu_measure(PyObject*, PyObject* arguments) {
  unsigned long long handle = 0;
  unsigned long long stream = 0;
  PyObject* jobs = nullptr;
  if (PyArg_ParseTuple(arguments, "KKO!", &handle, &stream, &PyList_Type, &jobs) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  std::deque<Geometry> geometries;
  std::vector<msprobe_tensor> tensors;
  std::vector<uint64_t> slots;
  for (Py_ssize_t at = 0; at < PyList_Size(jobs); ++at) {
    unsigned long long slot = 0;
    PyObject* described = nullptr;
    PyObject* alive = nullptr;  // until the kernel is started
    if (PyArg_ParseTuple(PyList_GetItem(jobs, at), "KO!O", &slot, &PyTuple_Type, &described, &alive) == 0)
      return nullptr;
    geometries.emplace_back();
    tensors.emplace_back();
    slots.push_back(slot);
    if (!read_tensor(described, &geometries.back(), &tensors.back())) return nullptr;
  }
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status =
      msprobe_gpu_measure(static_cast<msprobe_gpu*>(as_pointer(handle)), state.session, as_pointer(stream),
                          tensors.data(), slots.data(), slots.size());
  PyEval_RestoreThread(thread);
  return none_or_raise(status);
}

PyObject* gpu_drain(PyObject*, PyObject* handle) {
  auto* gpu = static_cast<msprobe_gpu*>(PyLong_AsVoidPtr(handle));
  if (gpu == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "this is no device");
    return nullptr;
  }
  if (state.session == nullptr) Py_RETURN_NONE;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = msprobe_gpu_drain(gpu, state.session);
  PyEval_RestoreThread(thread);
  return none_or_raise(status);
}

}  // namespace msprobe::python
