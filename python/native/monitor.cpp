// SPDX-License-Identifier: Apache-2.0
#include "monitor.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "msprobe/monitor.h"
#include "state.hpp"
#include "tensors.hpp"

namespace msprobe::python {
namespace {

struct Monitor {
  PyObject object;
  msprobe_monitor* engine;
  int inside;  // calls that have given the interpreter lock away: the engine may not go away under them
};

Monitor* as_monitor(PyObject* self) {
  return reinterpret_cast<Monitor*>(self);
}

/// Runs `part` without the interpreter lock.
template <typename Part>
msprobe_status unlocked(Monitor* monitor, Part part) {
  ++monitor->inside;
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = part();
  PyEval_RestoreThread(thread);
  --monitor->inside;
  return status;
}

/// The exception whose name stands before the text, as "TypeError: ops should be a list".
PyObject* raise_named(msprobe_status status) {
  const std::string_view text = msprobe_last_error();
  const struct {
    std::string_view name;
    PyObject* type;
  } known[] = {
      {"TypeError", PyExc_TypeError},
      {"ValueError", PyExc_ValueError},
      {"KeyError", PyExc_KeyError},
      {"AttributeError", PyExc_AttributeError},
  };
  for (const auto& [name, type] : known) {
    if (text.substr(0, name.size()) != name || text.substr(name.size(), 2) != ": ") continue;
    std::string reason(text.substr(name.size() + 2));
    if (type == PyExc_KeyError)
      reason = reason.substr(1, reason.size() - 2);  // its text puts the quotes there
    PyErr_SetString(type, reason.c_str());
    return nullptr;
  }
  PyErr_SetString(status == MSPROBE_INVALID_FILE ? PyExc_OSError : PyExc_ValueError, msprobe_last_error());
  return nullptr;
}

/// A member of the options; false with an exception pending.
bool read_option(PyObject* options, const char* key, int32_t* to) {
  PyObject* value = options == Py_None ? nullptr : PyDict_GetItemString(options, key);
  if (value == nullptr || value == Py_None) return true;
  const long number = PyLong_AsLong(value);
  if (number == -1 && PyErr_Occurred() != nullptr) return false;
  *to = static_cast<int32_t>(number);
  return true;
}

bool read_option(PyObject* options, const char* key, std::string* to, const char** text) {
  PyObject* value = options == Py_None ? nullptr : PyDict_GetItemString(options, key);
  if (value == nullptr || value == Py_None) return true;
  if (!PyUnicode_Check(value)) {
    PyErr_Format(PyExc_TypeError, "option %s must be a str", key);
    return false;
  }
  const Utf8 utf8(value);
  if (utf8.text() == nullptr) return false;
  *to = utf8.text();
  *text = to->c_str();
  return true;
}

// Monitor(config_path or None, config_text or None, options: dict)
PyObject* new_monitor(PyTypeObject* type, PyObject* arguments, PyObject*) {
  const char* path = nullptr;
  const char* text = nullptr;
  PyObject* given = Py_None;
  if (PyArg_ParseTuple(arguments, "zz|O", &path, &text, &given) == 0) return nullptr;
  if (given != Py_None && !PyDict_Check(given)) {
    PyErr_SetString(PyExc_TypeError, "the options must be a dict");
    return nullptr;
  }
  msprobe_monitor_options options{};
  options.struct_size = sizeof options;
  std::string framework;
  std::string output_dir;
  std::string group_mates;
  if (!read_option(given, "layout", &options.layout) || !read_option(given, "rank", &options.rank) ||
      !read_option(given, "pp_stage", &options.pp_stage) ||
      !read_option(given, "dynamic", &options.dynamic) ||
      !read_option(given, "distributed", &options.distributed) ||
      !read_option(given, "framework", &framework, &options.framework) ||
      !read_option(given, "output_dir", &output_dir, &options.output_dir) ||
      !read_option(given, "group_mates", &group_mates, &options.group_mates)) {
    return nullptr;
  }
  msprobe_monitor* engine = nullptr;
  const msprobe_status status = msprobe_monitor_open(path, text, &options, &engine);
  if (status < 0) return raise_named(status);
  const auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
  PyObject* self = allocate(type, 0);
  if (self == nullptr) {
    msprobe_monitor_close(engine);
    return nullptr;
  }
  as_monitor(self)->engine = engine;
  return self;
}

void close_engine(PyObject* self) {
  msprobe_monitor* engine = as_monitor(self)->engine;
  as_monitor(self)->engine = nullptr;
  while (as_monitor(self)->inside > 0) {
    PyThreadState* thread = PyEval_SaveThread();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    PyEval_RestoreThread(thread);
  }
  msprobe_monitor_close(engine);
}

void free_monitor(PyObject* self) {
  const ExceptionGuard exceptions;
  close_engine(self);
  PyTypeObject* type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* text_or_none(msprobe_status status, const char* text) {
  if (status != MSPROBE_OK) Py_RETURN_NONE;
  return PyUnicode_FromString(text);
}

/// Text of a failure, or None.
PyObject* failure_of(msprobe_status status) {
  if (status >= 0) Py_RETURN_NONE;
  return PyUnicode_DecodeUTF8(msprobe_last_error(),
                              static_cast<Py_ssize_t>(std::strlen(msprobe_last_error())), "replace");
}

PyObject* monitor_setting(PyObject* self, PyObject* arguments) {
  const char* key = nullptr;
  const char* json = nullptr;
  if (PyArg_ParseTuple(arguments, "s", &key) == 0) return nullptr;
  const msprobe_status status = msprobe_monitor_setting(as_monitor(self)->engine, key, &json);
  return text_or_none(status, json);
}

PyObject* monitor_set(PyObject* self, PyObject* arguments) {
  const char* key = nullptr;
  const char* json = nullptr;
  if (PyArg_ParseTuple(arguments, "ss", &key, &json) == 0) return nullptr;
  const msprobe_status status = msprobe_monitor_set(as_monitor(self)->engine, key, json);
  if (status < 0) return raise_named(status);
  Py_RETURN_NONE;
}

PyObject* monitor_set_rank(PyObject* self, PyObject* arguments) {
  int rank = 0;
  if (PyArg_ParseTuple(arguments, "i", &rank) == 0) return nullptr;
  msprobe_monitor_set_rank(as_monitor(self)->engine, rank);
  Py_RETURN_NONE;
}

PyObject* monitor_set_step(PyObject* self, PyObject* arguments) {
  unsigned long long number = 0;
  if (PyArg_ParseTuple(arguments, "K", &number) == 0) return nullptr;
  msprobe_monitor_set_step(as_monitor(self)->engine, number);
  Py_RETURN_NONE;
}

// series(quantity, stage, name, micro_step, scope) -> number
PyObject* monitor_series(PyObject* self, PyObject* arguments) {
  msprobe_series series{};
  series.struct_size = sizeof series;
  PyObject* name = nullptr;
  if (PyArg_ParseTuple(arguments, "siUi|z", &series.quantity, &series.stage, &name, &series.micro_step,
                       &series.scope) == 0) {
    return nullptr;
  }
  const Utf8 name_text(name);
  if (name_text.text() == nullptr) return nullptr;
  series.name = name_text.text();
  uint32_t id = 0;
  const msprobe_status status = msprobe_monitor_series(as_monitor(self)->engine, &series, &id);
  if (status < 0) return raise_named(status);
  return PyLong_FromUnsignedLong(id);
}

bool read_id(PyObject* object, uint32_t* id) {
  const unsigned long number = PyLong_AsUnsignedLong(object);
  if (number == static_cast<unsigned long>(-1) && PyErr_Occurred() != nullptr) return false;
  *id = static_cast<uint32_t>(number);
  return true;
}

// observe(number, tensor[, dtype text]) -> False if it is no plain tensor on the host. With the text: an
// array of NumPy that holds the elements of a tensor of that type.
PyObject* monitor_observe(PyObject* self, PyObject* arguments) {
  unsigned int id = 0;
  PyObject* object = nullptr;
  const char* dtype_text = nullptr;
  if (PyArg_ParseTuple(arguments, "IO|s", &id, &object, &dtype_text) == 0) return nullptr;
  msprobe_monitor* engine = as_monitor(self)->engine;
  const Busy busy;
  HostTensor host;
  if (!(dtype_text == nullptr ? read_host_tensor(object, &host) : read_array(object, &host))) Py_RETURN_FALSE;
  if (dtype_text != nullptr) host.tensor.dtype_text = dtype_text;
  if (host.bytes < kReleaseLockAbove) {
    msprobe_monitor_observe(engine, id, &host.tensor);
  } else {
    unlocked(as_monitor(self), [&] { return msprobe_monitor_observe(engine, id, &host.tensor); });
  }
  Py_RETURN_TRUE;
}

/// Some tensors, for which the interpreter lock is given away once.
class Bundle {
 public:
  explicit Bundle(Monitor* monitor) : monitor_(monitor), engine_(monitor->engine) {}

  bool full() const { return size_ == kRoom; }
  bool add(uint32_t id, PyObject* object) {
    if (!read_host_tensor(object, &tensors_[size_])) return false;
    ids_[size_] = id;
    bytes_ += tensors_[size_].bytes;
    ++size_;
    return true;
  }
  void observe() {
    const auto all = [&] {
      for (size_t i = 0; i < size_; ++i) msprobe_monitor_observe(engine_, ids_[i], &tensors_[i].tensor);
      return MSPROBE_OK;
    };
    if (bytes_ < kReleaseLockAbove) {
      all();
    } else {
      unlocked(monitor_, all);
    }
    size_ = 0;
    bytes_ = 0;
  }

 private:
  static constexpr size_t kRoom = 16;
  Monitor* monitor_;
  msprobe_monitor* engine_;
  size_t size_ = 0;
  int64_t bytes_ = 0;
  std::array<HostTensor, kRoom> tensors_;
  std::array<uint32_t, kRoom> ids_;
};

// observe_many(numbers, tensors) -> positions of those that are no plain tensors on the host; both are lists
PyObject* monitor_observe_many(PyObject* self, PyObject* arguments) {
  PyObject* ids = nullptr;
  PyObject* tensors = nullptr;
  if (PyArg_ParseTuple(arguments, "OO", &ids, &tensors) == 0) return nullptr;
  if (!PyList_Check(ids) || !PyList_Check(tensors)) {
    PyErr_SetString(PyExc_TypeError, "observe_many takes two lists");
    return nullptr;
  }
  const Busy busy;
  Ref others(PyList_New(0));
  if (!others) return nullptr;
  Bundle bundle(as_monitor(self));
  // Others may change the lists while the lock is given away.
  for (Py_ssize_t at = 0; at < std::min(PyList_Size(ids), PyList_Size(tensors)); ++at) {
    uint32_t id = 0;
    const Ref tensor = Ref::borrowed(PyList_GetItem(tensors, at));
    if (!read_id(PyList_GetItem(ids, at), &id)) return nullptr;
    if (!bundle.add(id, tensor.get())) {
      const Ref position(PyLong_FromSsize_t(at));
      if (!position || PyList_Append(others.get(), position.get()) != 0) return nullptr;
    }
    if (bundle.full()) bundle.observe();
  }
  bundle.observe();
  return others.release();
}

/// Exact, if Python has it as a whole number.
int64_t whole_number(PyObject* value, double real) {
  if (PyLong_Check(value)) {
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) return whole;
    const unsigned long long natural = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred() == nullptr) return static_cast<int64_t>(natural);
    PyErr_Clear();
  }
  return std::abs(real) < 0x1p63 ? static_cast<int64_t>(real) : 0;  // NaN, too
}

uint64_t whole_count(double value) {
  return value >= 0 && value < 0x1p63 ? static_cast<uint64_t>(value) : 0;
}

uint32_t dtype_by_text(std::string_view text) {
  constexpr std::string_view kPrefix = "torch.";
  if (text.substr(0, kPrefix.size()) == kPrefix) text.remove_prefix(kPrefix.size());
  msprobe_dtype_info info{};
  for (uint32_t dtype = 0; msprobe_get_dtype(dtype, &info) == MSPROBE_OK; ++dtype) {
    if (text == info.name) return dtype;
  }
  return MSPROBE_DTYPE_OTHER;
}

// observe_statistics(number, (max, min, mean, norm, nan, zero, inf, count[, below]), shape, dtype text) ->
// whether it was taken
PyObject* monitor_observe_statistics(PyObject* self, PyObject* arguments) {
  unsigned int id = 0;
  PyObject* values = nullptr;
  PyObject* shape = nullptr;
  const char* dtype_text = nullptr;
  if (PyArg_ParseTuple(arguments, "IOOs", &id, &values, &shape, &dtype_text) == 0) return nullptr;
  constexpr Py_ssize_t kLeast = 8;
  const Py_ssize_t size = PySequence_Size(values);
  if (size < 0) return nullptr;
  if (size < kLeast || size > kLeast + 1) {
    PyErr_SetString(PyExc_TypeError, "statistics are 8 or 9 numbers");
    return nullptr;
  }
  std::array<double, kLeast + 1> numbers{};
  std::array<int64_t, 2> extrema{};
  for (Py_ssize_t at = 0; at < size; ++at) {
    const Ref item(PySequence_GetItem(values, at));
    if (!item) return nullptr;
    numbers[at] = PyFloat_AsDouble(item.get());
    if (numbers[at] == -1 && PyErr_Occurred() != nullptr) return nullptr;
    if (at < 2) extrema[at] = whole_number(item.get(), numbers[at]);
  }
  std::array<int64_t, kMaxDims> lengths{};
  const Ref sizes(PySequence_Tuple(shape));
  if (!sizes) return nullptr;
  const Py_ssize_t ndim = PyTuple_Size(sizes.get());
  if (ndim > static_cast<Py_ssize_t>(kMaxDims)) {
    PyErr_SetString(PyExc_ValueError, "a tensor has more than 64 axes");
    return nullptr;
  }
  for (Py_ssize_t at = 0; at < ndim; ++at) {
    lengths[at] = PyLong_AsLongLong(PyTuple_GetItem(sizes.get(), at));
    if (lengths[at] == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  msprobe_statistics statistics{};
  statistics.struct_size = sizeof statistics;
  statistics.max = numbers[0];
  statistics.min = numbers[1];
  statistics.mean = numbers[2];
  statistics.norm = numbers[3];
  statistics.integer_max = extrema[0];
  statistics.integer_min = extrema[1];
  statistics.nan = whole_count(numbers[4]);
  statistics.zero = whole_count(numbers[5]);
  statistics.inf = whole_count(numbers[6]);
  statistics.count = whole_count(numbers[7]);
  const uint64_t below = size > kLeast ? whole_count(numbers[kLeast]) : UINT64_MAX;
  const msprobe_status status =
      msprobe_monitor_observe_statistics(as_monitor(self)->engine, id, &statistics, below, lengths.data(),
                                         static_cast<uint32_t>(ndim), dtype_by_text(dtype_text));
  return PyBool_FromLong(status == MSPROBE_OK);
}

// observe_values(number, numbers) -> whether they were taken
PyObject* monitor_observe_values(PyObject* self, PyObject* arguments) {
  unsigned int id = 0;
  PyObject* values = nullptr;
  if (PyArg_ParseTuple(arguments, "IO", &id, &values) == 0) return nullptr;
  constexpr Py_ssize_t kMost = 16;
  std::array<double, kMost> numbers{};
  const Py_ssize_t size = PySequence_Size(values);
  if (size < 0) return nullptr;
  for (Py_ssize_t at = 0; at < std::min(size, kMost); ++at) {
    const Ref item(PySequence_GetItem(values, at));
    if (!item) return nullptr;
    numbers[at] = PyFloat_AsDouble(item.get());
    if (numbers[at] == -1 && PyErr_Occurred() != nullptr) return nullptr;
  }
  const msprobe_status status = msprobe_monitor_observe_values(as_monitor(self)->engine, id, numbers.data(),
                                                               static_cast<size_t>(std::min(size, kMost)));
  return PyBool_FromLong(status == MSPROBE_OK);
}

PyObject* monitor_absent(PyObject* self, PyObject* id) {
  uint32_t number = 0;
  if (!read_id(id, &number)) return nullptr;
  return PyBool_FromLong(msprobe_monitor_absent(as_monitor(self)->engine, number) == MSPROBE_OK);
}

// value(number) -> JSON text, or None
PyObject* monitor_value(PyObject* self, PyObject* id) {
  uint32_t number = 0;
  const char* json = nullptr;
  if (!read_id(id, &number)) return nullptr;
  const msprobe_status status = msprobe_monitor_value(as_monitor(self)->engine, number, &json);
  return text_or_none(status, json);
}

PyObject* monitor_collecting(PyObject* self, PyObject*) {
  return PyBool_FromLong(*msprobe_monitor_collecting(as_monitor(self)->engine));
}

// step_end() -> {"written", "finished", "alerts", "warning": text or None}
PyObject* monitor_step_end(PyObject* self, PyObject*) {
  msprobe_step_result result{};
  result.struct_size = sizeof result;
  msprobe_monitor* engine = as_monitor(self)->engine;
  const msprobe_status status =
      unlocked(as_monitor(self), [&] { return msprobe_monitor_step_end(engine, &result); });
  return Py_BuildValue("{s:O,s:O,s:I,s:N}", "written", result.written != 0 ? Py_True : Py_False, "finished",
                       result.finished != 0 ? Py_True : Py_False, "alerts", result.alerts, "warning",
                       failure_of(status));
}

PyObject* monitor_alerts(PyObject* self, PyObject*) {
  const char* json = nullptr;
  const msprobe_status status = msprobe_monitor_alerts(as_monitor(self)->engine, &json);
  return text_or_none(status, json);
}

// reload() -> (status, changed, error or None)
PyObject* monitor_reload(PyObject* self, PyObject*) {
  int changed = 0;
  msprobe_monitor* engine = as_monitor(self)->engine;
  const msprobe_status status =
      unlocked(as_monitor(self), [&] { return msprobe_monitor_reload(engine, &changed); });
  return Py_BuildValue("iiN", static_cast<int>(status), changed, failure_of(status));
}

PyObject* monitor_close(PyObject* self, PyObject*) {
  close_engine(self);
  Py_RETURN_NONE;
}

// In a child after fork(): the engine is its parent's, and is left alone.
PyObject* monitor_disown(PyObject* self, PyObject*) {
  as_monitor(self)->engine = nullptr;
  Py_RETURN_NONE;
}

PyMethodDef monitor_methods[] = {
    {"setting", monitor_setting, METH_VARARGS, "setting(key) -> JSON text or None"},
    {"set", monitor_set, METH_VARARGS, "set(key, JSON text)"},
    {"set_rank", monitor_set_rank, METH_VARARGS, "set_rank(rank)"},
    {"set_step", monitor_set_step, METH_VARARGS, "set_step(number of the step under way)"},
    {"series", monitor_series, METH_VARARGS,
     "series(quantity, stage, name, micro_step, scope=None) -> number"},
    {"observe", monitor_observe, METH_VARARGS,
     "observe(number, tensor) -> False if it is no plain tensor on the host"},
    {"observe_many", monitor_observe_many, METH_VARARGS,
     "observe_many(numbers, tensors) -> positions of those that are no plain tensors on the host"},
    {"observe_statistics", monitor_observe_statistics, METH_VARARGS,
     "observe_statistics(number, (max, min, mean, norm, nan, zero, inf, count[, below]), shape, dtype)"},
    {"observe_values", monitor_observe_values, METH_VARARGS, "observe_values(number, numbers)"},
    {"absent", monitor_absent, METH_O, "absent(number)"},
    {"value", monitor_value, METH_O, "value(number) -> JSON text or None"},
    {"collecting", monitor_collecting, METH_NOARGS, "whether this step is in the window"},
    {"step_end", monitor_step_end, METH_NOARGS, "ends the step"},
    {"alerts", monitor_alerts, METH_NOARGS, "the alerts of the last step as JSON text"},
    {"reload", monitor_reload, METH_NOARGS, "reload() -> (status, changed, error)"},
    {"close", monitor_close, METH_NOARGS, "closes the files"},
    {"disown", monitor_disown, METH_NOARGS, "in a child after fork(): the engine is its parent's"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* make_monitor_type() {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(new_monitor)},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_monitor)},
      {Py_tp_methods, static_cast<void*>(monitor_methods)},
      {0, nullptr},
  };
  PyType_Spec spec = {"msprobe._native.Monitor", sizeof(Monitor), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}

}  // namespace msprobe::python
