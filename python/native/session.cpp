// SPDX-License-Identifier: Apache-2.0
#include "session.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include "gpu.hpp"
#include "stacks.hpp"
#include "tensors.hpp"
#include "values.hpp"

namespace msprobe::python {
namespace {

bool need_session() {
  if (state.session != nullptr) return true;
  PyErr_SetString(PyExc_RuntimeError, "no session is open");
  return false;
}

// Takes an attribute of `from` and keeps it for good.
bool take(PyObject* from, const char* name, PyObject** to) {
  PyObject* found = PyObject_GetAttrString(from, name);
  if (found == nullptr) return false;
  Py_XDECREF(*to);
  *to = found;
  return true;
}

bool take_dtypes(PyObject* table) {
  const Py_ssize_t size = PySequence_Size(table);
  if (size < 0) return false;
  state.dtypes.clear();
  for (Py_ssize_t at = 0; at < size; ++at) {
    const Ref row(PySequence_GetItem(table, at));
    Dtype dtype;
    if (!row || PyArg_ParseTuple(row.get(), "OII", &dtype.object, &dtype.code, &dtype.size) == 0)
      return false;
    Py_INCREF(dtype.object);
    state.dtypes.push_back(dtype);
  }
  return true;
}

}  // namespace

PyObject* bind(PyObject*, PyObject* binding) {
  const Ref dtypes(PyObject_GetAttrString(binding, "dtypes"));
  if (!dtypes || !take_dtypes(dtypes.get())) return nullptr;
  const struct {
    const char* name;
    PyObject** to;
  } members[] = {
      {"tensor_type", &state.tensor_type},
      {"parameter_type", &state.parameter_type},
      {"data_ptr", &state.data_ptr},
      {"stride", &state.stride},
      {"is_neg", &state.is_neg},
      {"is_conj", &state.is_conj},
      {"strided", &state.strided},
      {"is_grad_enabled", &state.is_grad_enabled},
      {"tracing_state", &state.tracing_state},
      {"compile_context", &state.compile_context},
      {"record_type", &state.record_type},
      {"describe", &state.describe},
      {"describe_named", &state.describe_named},
      {"format_stack", &state.format_stack},
      {"format_exception", &state.format_exception},
      {"asynchronous", &state.asynchronous},
  };
  for (const auto& member : members) {
    if (!take(binding, member.name, member.to)) return nullptr;
  }
  // Only of a framework whose results do not show the nodes of their backward.
  // Not of every framework.
  Py_CLEAR(state.make_backward);
  if (!take(binding, "make_backward", &state.make_backward)) PyErr_Clear();
  Py_CLEAR(state.has_override);
  Py_CLEAR(state.call_unwrapped);
  Py_CLEAR(state.plain_functions);
  Py_CLEAR(state.call_again);
  if (!take(binding, "call_again", &state.call_again)) PyErr_Clear();
  Py_CLEAR(state.storage_offset);
  if (!take(binding, "storage_offset", &state.storage_offset)) PyErr_Clear();
  Py_CLEAR(state.get_device);
  if (take(binding, "get_device", &state.get_device) &&
      (!take(binding, "is_capturing", &state.is_capturing) ||
       !take(binding, "current_stream", &state.current_stream) ||
       !take(binding, "gpu_failed", &state.gpu_failed))) {
    return nullptr;
  }
  PyErr_Clear();
  Py_CLEAR(state.node_of_change);
  if (!take(binding, "node_of_change", &state.node_of_change)) PyErr_Clear();
  if (!take(binding, "call_unwrapped", &state.call_unwrapped) ||
      !take(binding, "plain_functions", &state.plain_functions) ||
      !take(binding, "has_override", &state.has_override)) {
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

PyObject* open_session(PyObject*, PyObject* arguments) {
  const char* path = nullptr;
  const char* text = nullptr;
  msprobe_overrides overrides{};
  overrides.struct_size = sizeof(overrides);
  if (PyArg_ParseTuple(arguments, "zzzzzzz|zp", &path, &text, &overrides.task, &overrides.dump_path,
                       &overrides.level, &overrides.step, &overrides.framework, &overrides.file_suffix,
                       &overrides.dumps_kernels) == 0) {
    return nullptr;
  }
  if (state.session != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "a session is open already");
    return nullptr;
  }
  return none_or_raise(msprobe_session_open(path, text, &overrides, &state.session));
}

PyObject* close_session(PyObject*, PyObject*) {
  msprobe_session* session = state.session;
  state.session = nullptr;  // nothing begins any more
  msprobe_status status = MSPROBE_OK;
  for (int waited = 0; state.busy_threads > 0 && waited < 5000; ++waited) {
    PyThreadState* thread = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(thread);
  }
  const bool in_use = state.busy_threads > 0;
  PyThreadState* thread = PyEval_SaveThread();
  // One that a thread does not let go of is written, and left to the end of the process.
  status = in_use ? msprobe_flush(session) : msprobe_session_close(session);
  PyEval_RestoreThread(thread);
  forget_stacks();
  collect_released();
  return none_or_raise(status);
}

PyObject* disown(PyObject*, PyObject*) {
  state.session = nullptr;
  Py_RETURN_NONE;
}

PyObject* info(PyObject*, PyObject*) {
  if (!need_session()) return nullptr;
  msprobe_info told{};
  told.struct_size = sizeof(told);
  const msprobe_status status = msprobe_session_info(state.session, &told);
  if (status != MSPROBE_OK) return raise_status(status);
  state.adding_may_wait = told.wants_bytes != 0;
  state.wants_files = told.wants_files != 0;
  state.takes_later = told.takes_later != 0;
  state.links_tensors = told.links_tensors != 0;
  return Py_BuildValue(
      "{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:K,s:L,s:i,s:K,s:K}", "task", static_cast<int>(told.task), "level",
      static_cast<int>(told.level), "records_modules", told.records_modules, "records_apis",
      told.records_apis, "enabled", told.enabled, "reloads", told.reloads, "wants_bytes", told.wants_bytes,
      "async_dump", told.async_dump, "step", static_cast<unsigned long long>(told.step), "rank",
      static_cast<long long>(told.rank), "finished", told.finished, "entries",
      static_cast<unsigned long long>(told.entries), "steps", static_cast<unsigned long long>(told.steps));
}

PyObject* setting(PyObject*, PyObject* arguments) {
  const char* key = nullptr;
  if (!need_session() || PyArg_ParseTuple(arguments, "s", &key) == 0) return nullptr;
  const char* json = msprobe_session_setting(state.session, key);
  return PyUnicode_FromString(json != nullptr ? json : "null");
}

PyObject* running(PyObject*, PyObject*) {
  if (state.session == nullptr) Py_RETURN_FALSE;
  const volatile int* flag = msprobe_session_running(state.session);
  return PyBool_FromLong(flag != nullptr && *flag != 0 ? 1 : 0);
}

PyObject* start(PyObject*, PyObject*) {
  if (!need_session()) return nullptr;
  ++state.epoch;
  msprobe_decision decision = MSPROBE_NOT_NOW;
  int first_time = 0;
  const msprobe_status status = msprobe_start(state.session, &decision, &first_time);
  if (status < 0) return raise_status(status);
  return Py_BuildValue("ii", static_cast<int>(decision), first_time);
}

namespace {

// Calls that may write files, without the interpreter lock.
template <typename Call>
PyObject* without_lock(Call call) {
  if (!need_session()) return nullptr;
  msprobe_session* session = state.session;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = call(session);
  PyEval_RestoreThread(thread);
  collect_released();
  return none_or_raise(status);
}

}  // namespace

PyObject* stop(PyObject*, PyObject*) {
  return without_lock(msprobe_stop);
}

PyObject* step(PyObject*, PyObject*) {
  ++state.epoch;
  state.may_reuse = true;
  return without_lock(msprobe_step);
}

PyObject* flush(PyObject*, PyObject*) {
  return without_lock(msprobe_flush);
}

PyObject* set_rank(PyObject*, PyObject* arguments) {
  long long rank = 0;
  if (!need_session() || PyArg_ParseTuple(arguments, "L", &rank) == 0) return nullptr;
  return none_or_raise(msprobe_set_rank(state.session, rank));
}

PyObject* set_risk(PyObject*, PyObject* arguments) {
  const char* operation = nullptr;
  const char* risk = nullptr;
  if (!need_session() || PyArg_ParseTuple(arguments, "ss", &operation, &risk) == 0) return nullptr;
  return none_or_raise(msprobe_set_risk(state.session, operation, risk));
}

PyObject* set_init_step(PyObject*, PyObject* arguments) {
  unsigned long long number = 0;
  if (!need_session() || PyArg_ParseTuple(arguments, "K", &number) == 0) return nullptr;
  return none_or_raise(msprobe_set_init_step(state.session, number));
}

PyObject* set_dump_path(PyObject*, PyObject* arguments) {
  const char* path = nullptr;
  if (PyArg_ParseTuple(arguments, "s", &path) == 0) return nullptr;
  return without_lock([path](msprobe_session* session) { return msprobe_set_dump_path(session, path); });
}

PyObject* restart_step(PyObject*, PyObject*) {
  ++state.epoch;
  state.may_reuse = true;
  return without_lock(msprobe_restart_step);
}

PyObject* drop_step(PyObject*, PyObject*) {
  ++state.epoch;
  state.may_reuse = true;
  return without_lock(msprobe_drop_step);
}

PyObject* set_recording(PyObject*, PyObject* arguments) {
  int on = 0;
  if (!need_session() || PyArg_ParseTuple(arguments, "p", &on) == 0) return nullptr;
  return none_or_raise(msprobe_set_recording(state.session, on));
}

PyObject* set_tokens(PyObject*, PyObject* arguments) {
  long long begin = 0;
  long long end = 0;
  if (!need_session() || PyArg_ParseTuple(arguments, "LL", &begin, &end) == 0) return nullptr;
  return none_or_raise(msprobe_set_tokens(state.session, begin, end));
}

PyObject* reload(PyObject*, PyObject*) {
  if (!need_session()) return nullptr;
  int changed = 0;
  const msprobe_status status = msprobe_reload(state.session, &changed);
  if (status < 0 && changed == 0) return raise_status(status);
  return Py_BuildValue("iis", static_cast<int>(status), changed, status < 0 ? msprobe_last_error() : "");
}

PyObject* log_error(PyObject*, PyObject* arguments) {
  const char* kind = nullptr;
  const char* text = nullptr;
  if (PyArg_ParseTuple(arguments, "ss", &kind, &text) == 0) return nullptr;
  if (state.session != nullptr) msprobe_log_error(state.session, kind, text);
  Py_RETURN_NONE;
}

PyObject* intern(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "s", &name) == 0) return nullptr;
  uint32_t number = 0;
  const msprobe_status status = msprobe_intern(name, &number);
  if (status != MSPROBE_OK) return raise_status(status);
  return PyLong_FromUnsignedLong(number);
}

PyObject* set_pseudo_parent(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  if (PyArg_ParseTuple(arguments, "z", &name) == 0) return nullptr;
  if (state.session != nullptr) msprobe_set_pseudo_parent(state.session, name);
  Py_RETURN_NONE;
}

PyObject* describe_training(PyObject*, PyObject* arguments) {
  const char* json = nullptr;
  if (PyArg_ParseTuple(arguments, "s", &json) == 0) return nullptr;
  if (state.session != nullptr) msprobe_describe_training(state.session, json, std::strlen(json));
  Py_RETURN_NONE;
}

PyObject* set_micro_step(PyObject*, PyObject* arguments) {
  unsigned int number = 0;
  if (PyArg_ParseTuple(arguments, "I", &number) == 0) return nullptr;
  if (state.session != nullptr) msprobe_set_micro_step(state.session, number);
  Py_RETURN_NONE;
}

PyObject* may_change_unseen(PyObject*, PyObject*) {
  state.may_reuse = false;
  Py_RETURN_NONE;
}

PyObject* changed_unseen(PyObject*, PyObject*) {
  ++state.epoch;
  Py_RETURN_NONE;
}

PyObject* set_compatible(PyObject*, PyObject* arguments) {
  int on = 0;
  if (PyArg_ParseTuple(arguments, "p", &on) == 0) return nullptr;
  state.python_compatible = on != 0;
  Py_RETURN_NONE;
}

PyObject* wants_elements(PyObject*, PyObject*) {
  return PyBool_FromLong(this_thread.wants_elements ? 1 : 0);
}

PyObject* wants_files(PyObject*, PyObject*) {
  return PyBool_FromLong(this_thread.wants_files ? 1 : 0);
}

PyObject* elements_may_come_later(PyObject*, PyObject*) {
  return PyBool_FromLong(state.takes_later && !this_thread.wants_now ? 1 : 0);
}

PyObject* fill_tensor(PyObject*, PyObject* arguments) {
  unsigned long long slot = 0;
  PyObject* object = nullptr;
  if (PyArg_ParseTuple(arguments, "KO", &slot, &object) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  HostTensor host;
  if (!read_host_tensor(object, &host)) {
    PyErr_SetString(PyExc_TypeError, "the elements must be a plain tensor in host memory");
    return nullptr;
  }
  const Busy busy;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = msprobe_fill_tensor(state.session, slot, &host.tensor);
  PyEval_RestoreThread(thread);
  // It is not the fault of the tensor that is recorded meanwhile.
  if (status < 0) log_failure("recording a tensor", msprobe_last_error());
  Py_RETURN_NONE;
}

PyObject* save(PyObject*, PyObject* arguments) {
  PyObject* value = nullptr;
  const char* name = nullptr;
  int gradient = 0;
  if (!need_session() || PyArg_ParseTuple(arguments, "Osp", &value, &name, &gradient) == 0) return nullptr;
  const Busy busy;
  msprobe_builder* builder = nullptr;
  uint64_t entry = 0;
  const msprobe_status status = msprobe_save_begin(state.session, name, gradient, &builder, &entry);
  if (status < 0) return raise_status(status);
  if (status != MSPROBE_OK || builder == nullptr) Py_RETURN_NONE;
  this_thread.wants_elements = state.adding_may_wait;
  this_thread.wants_files = state.wants_files;
  const bool added = add_value(builder, nullptr, value);
  if (!added) {
    msprobe_builder_abort(builder);
    log_exception("saving a value");
    measure_on_gpus();
    Py_RETURN_NONE;
  }
  msprobe_builder_commit(builder);
  measure_on_gpus();
  return PyLong_FromUnsignedLongLong(entry);
}

PyObject* fill_saved_gradient(PyObject*, PyObject* arguments) {
  unsigned long long entry = 0;
  const char* path = nullptr;
  PyObject* gradient = nullptr;
  if (PyArg_ParseTuple(arguments, "KsO", &entry, &path, &gradient) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  const Busy busy;
  if (!fill_gradient(entry, path, gradient) && PyErr_Occurred() != nullptr)
    log_exception("saving a gradient");
  Py_RETURN_NONE;
}

PyObject* fill_statistics(PyObject*, PyObject* arguments) {
  unsigned long long slot = 0;
  msprobe_statistics values{};
  values.struct_size = sizeof(values);
  long long integer_max = 0;
  long long integer_min = 0;
  unsigned long long counts[4] = {};
  if (PyArg_ParseTuple(arguments, "KddddLLKKKK", &slot, &values.max, &values.min, &values.mean, &values.norm,
                       &integer_max, &integer_min, &counts[0], &counts[1], &counts[2], &counts[3]) == 0) {
    return nullptr;
  }
  values.integer_max = integer_max;
  values.integer_min = integer_min;
  values.count = counts[0];
  values.zero = counts[1];
  values.nan = counts[2];
  values.inf = counts[3];
  if (state.session != nullptr) msprobe_fill_statistics(state.session, slot, &values);
  Py_RETURN_NONE;
}

}  // namespace msprobe::python
