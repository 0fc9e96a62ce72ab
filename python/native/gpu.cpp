// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <map>
#include <string>
#include <vector>

#include "msprobe/device.h"
#include "state.hpp"
#include "tensors.hpp"

namespace msprobe::python {
namespace {

std::map<int, msprobe_gpu*> gpus;  // by ordinal; to the end of the process

struct Waiting {
  int ordinal;
  uint64_t slot;
  PyObject* tensor;  // whose memory must be there until the kernel is started
};
thread_local std::vector<Waiting> waiting;

int ordinal_of(PyObject* tensor) {
  const Ref is_cuda(PyObject_GetAttr(tensor, names.is_cuda));
  if (!is_cuda || is_cuda.get() != Py_True) return -1;
  const Ref ordinal(PyObject_CallFunctionObjArgs(state.get_device, tensor, nullptr));
  return ordinal ? static_cast<int>(PyLong_AsLong(ordinal.get())) : -1;
}

bool is_capturing() {
  const Ref answer(PyObject_CallFunctionObjArgs(state.is_capturing, nullptr));
  return !answer || answer.get() != Py_False;
}

/// A device that failed is left to the framework's kernels; Python tells it.
void give_up(int ordinal) {
  gpus.erase(ordinal);
  const Ref told(PyObject_CallFunction(state.gpu_failed, "is", ordinal, msprobe_last_error()));
  if (!told) log_exception("measuring tensors on a device");
}

/// Calls work(gpu, session) without the interpreter lock. The library's reason of a failure is this thread's.
template <typename Work>
void on_gpu(int ordinal, Work work) {
  const auto found = gpus.find(ordinal);
  msprobe_session* session = state.session;
  if (found == gpus.end() || session == nullptr) return;
  msprobe_gpu* gpu = found->second;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = work(gpu, session);
  PyEval_RestoreThread(thread);
  if (status < 0) give_up(ordinal);
}

void measure(int ordinal, const std::vector<uint64_t>& slots) {
  const Ref number(PyObject_CallFunction(state.current_stream, "i", ordinal));
  const unsigned long long stream = number ? PyLong_AsUnsignedLongLong(number.get()) : 0;
  if (PyErr_Occurred() != nullptr) return log_exception("measuring tensors on a device");
  on_gpu(ordinal, [&](msprobe_gpu* gpu, msprobe_session* session) {
    return msprobe_gpu_measure(gpu, session, reinterpret_cast<void*>(static_cast<uintptr_t>(stream)),
                               slots.data(), slots.size());
  });
}

}  // namespace

bool knows_gpus() {
  return !gpus.empty();
}

PyObject* gpu_compile(PyObject*, PyObject* arguments) {
  const char* driver = nullptr;
  const char* compiler = nullptr;
  const char* architecture = nullptr;
  int ordinal = 0;
  if (PyArg_ParseTuple(arguments, "zszi", &driver, &compiler, &architecture, &ordinal) == 0) return nullptr;
  std::string code;
  const auto take = [](void* to, const void* bytes, size_t size) {
    static_cast<std::string*>(to)->assign(static_cast<const char*>(bytes), size);
  };
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = msprobe_gpu_compile(driver, compiler, architecture, ordinal, take, &code);
  PyEval_RestoreThread(thread);
  if (status != MSPROBE_OK) return raise_status(status);
  return PyBytes_FromStringAndSize(code.data(), static_cast<Py_ssize_t>(code.size()));
}

PyObject* gpu_open(PyObject*, PyObject* arguments) {
  const char* driver = nullptr;
  const char* architecture = nullptr;
  PyObject* bytes = nullptr;
  int ordinal = 0;
  char* code = nullptr;
  Py_ssize_t size = 0;
  if (PyArg_ParseTuple(arguments, "zzSi", &driver, &architecture, &bytes, &ordinal) == 0 ||
      PyBytes_AsStringAndSize(bytes, &code, &size) != 0) {
    return nullptr;
  }
  msprobe_gpu* gpu = nullptr;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status =
      msprobe_gpu_open(driver, architecture, code, static_cast<size_t>(size), ordinal, &gpu);
  PyEval_RestoreThread(thread);
  if (status != MSPROBE_OK) return raise_status(status);
  gpus[ordinal] = gpu;
  Py_RETURN_NONE;
}

PyObject* gpu_takes(PyObject*, PyObject* object) {
  Geometry geometry;
  msprobe_tensor tensor;
  int64_t bytes = 0;
  bool on_host = false;
  const bool read = read_tensor(object, &geometry, &tensor, &bytes, &on_host);
  PyErr_Clear();
  return PyBool_FromLong(read && !on_host && gpu_for(object, tensor) >= 0 ? 1 : 0);
}

PyObject* gpu_drain(PyObject*, PyObject*) {
  if (state.session == nullptr) Py_RETURN_NONE;
  const Busy busy;
  measure_on_gpus();
  std::vector<int> ordinals;
  for (const auto& one : gpus) ordinals.push_back(one.first);
  for (const int ordinal : ordinals) on_gpu(ordinal, msprobe_gpu_drain);
  Py_RETURN_NONE;
}

int gpu_for(PyObject* object, const msprobe_tensor& tensor) {
  if (gpus.empty() || this_thread.wants_files || state.session == nullptr) return -1;
  const int ordinal = ordinal_of(object);
  const bool taken =
      gpus.count(ordinal) != 0 && !is_capturing() && msprobe_gpu_takes(state.session, &tensor) == MSPROBE_OK;
  PyErr_Clear();
  return taken ? ordinal : -1;
}

void add_on_gpu(msprobe_builder* builder, const char* key, PyObject* object, msprobe_tensor tensor,
                int ordinal) {
  tensor.flags |= MSPROBE_TENSOR_DEFERRED | MSPROBE_TENSOR_ON_DEVICE;
  uint64_t slot = 0;
  msprobe_add_tensor(builder, key, &tensor, &slot);
  if (slot == 0) return;
  Py_INCREF(object);
  waiting.push_back({ordinal, slot, object});
}

void measure_on_gpus() {
  if (waiting.empty()) return;
  const ExceptionGuard guard;
  std::vector<Waiting> all;
  all.swap(waiting);
  std::map<int, std::vector<uint64_t>> by_ordinal;
  for (const Waiting& one : all) by_ordinal[one.ordinal].push_back(one.slot);
  for (const auto& [ordinal, slots] : by_ordinal) measure(ordinal, slots);
  for (const Waiting& one : all) Py_DECREF(one.tensor);
}

}  // namespace msprobe::python
