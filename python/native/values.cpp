// SPDX-License-Identifier: Apache-2.0
#include "values.hpp"

#include <cstring>
#include <exception>

#include "gpu.hpp"
#include "tensors.hpp"

namespace msprobe::python {
namespace {

constexpr int kMaxDepth = 400;

bool is_special_name(const char* key) {
  return key != nullptr && (std::strcmp(key, "dtype") == 0 || std::strcmp(key, "device") == 0 ||
                            std::strcmp(key, "output_dtype") == 0);
}

bool add_json(msprobe_builder* builder, const char* key, PyObject* json) {
  const Utf8 text(json);
  if (text.text() == nullptr) return false;
  if (msprobe_add_json(builder, key, text.text(), text.size()) == MSPROBE_INVALID)
    msprobe_add_null(builder, key);
  return true;
}

bool add_integer(msprobe_builder* builder, const char* key, PyObject* value) {
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) {
    if (number == -1 && PyErr_Occurred() != nullptr) return false;
    msprobe_add_int(builder, key, "int", number);
    return true;
  }
  const Ref json(PyUnicode_FromFormat("{\"type\":\"int\",\"value\":%S}", value));
  return json && add_json(builder, key, json.get());
}

bool add_list(msprobe_builder* builder, const char* key, PyObject* value, int depth) {
  msprobe_open_list(builder, key);
  // The size is read anew each time: the list may change while the interpreter lock is released.
  for (Py_ssize_t at = 0; at < PyList_Size(value); ++at) {
    const Ref element = Ref::borrowed(PyList_GetItem(value, at));
    if (!element || !add_value(builder, nullptr, element.get(), depth + 1)) return false;
  }
  msprobe_close(builder);
  return true;
}

bool add_tuple(msprobe_builder* builder, const char* key, PyObject* value, int depth) {
  msprobe_open_list(builder, key);
  const Py_ssize_t size = PyTuple_Size(value);
  for (Py_ssize_t at = 0; at < size; ++at) {
    if (!add_value(builder, nullptr, PyTuple_GetItem(value, at), depth + 1)) return false;
  }
  msprobe_close(builder);
  return true;
}

// A key of a dict as text, in the form of Python's JSON writer.
Ref key_text(PyObject* key) {
  if (PyUnicode_Check(key)) return Ref::borrowed(key);
  return Ref(PyObject_Str(key));
}

template <typename Visit>
bool for_members(PyObject* members, Visit visit) {
  // Copy the dict, because it may change while the interpreter lock is released.
  const Ref copy(PyDict_Copy(members));
  if (!copy) return false;
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(copy.get(), &at, &key, &value) != 0) {
    const Ref text = key_text(key);
    if (!text) return false;
    const Utf8 name(text.get());
    if (name.text() == nullptr || !visit(name.text(), value)) return false;
  }
  return true;
}

bool add_dict(msprobe_builder* builder, const char* key, PyObject* value, int depth) {
  msprobe_open_object(builder, key);
  if (!for_members(value, [&](const char* name, PyObject* member) {
        return add_value(builder, name, member, depth + 1);
      })) {
    return false;
  }
  msprobe_close(builder);
  return true;
}

bool add_described(msprobe_builder* builder, const char* key, PyObject* value, int depth) {
  const Ref described(PyObject_CallFunctionObjArgs(state.describe, value, nullptr));
  if (!described) return false;
  if (described.get() == Py_None) {
    msprobe_add_null(builder, key);
    return true;
  }
  if (PyUnicode_Check(described.get())) return add_json(builder, key, described.get());
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(described.get()));
  if (type == state.record_type) return add_record(builder, key, described.get());
  if (type == state.tensor_type) {  // if we cannot read it, describe() must not get it again
    if (add_plain_tensor(builder, key, described.get()) == Added::not_plain) msprobe_add_null(builder, key);
    return true;
  }
  if (PyDict_CheckExact(described.get()) || PyList_CheckExact(described.get()) ||
      PyTuple_CheckExact(described.get())) {
    return add_value(builder, key, described.get(), depth + 1);
  }
  PyErr_SetString(PyExc_TypeError, "describe() returned something that cannot be walked");
  return false;
}

}  // namespace

bool add_value(msprobe_builder* builder, const char* key, PyObject* value, int depth) {
  if (depth > kMaxDepth) {
    PyErr_SetString(PyExc_RecursionError, "a value is nested deeper than 400 levels");
    return false;
  }
  if (is_special_name(key)) {
    const Ref name(PyUnicode_FromString(key));
    const Ref json(name ? PyObject_CallFunctionObjArgs(state.describe_named, name.get(), value, nullptr)
                        : nullptr);
    if (!json) return false;
    if (json.get() != Py_None) return add_json(builder, key, json.get());
  }
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  if (type == state.tensor_type || type == state.parameter_type) {
    if (add_plain_tensor(builder, key, value) == Added::yes) return true;
    return add_described(builder, key, value, depth);
  }
  if (value == Py_None) {
    msprobe_add_null(builder, key);
    return true;
  }
  if (value == Py_True || value == Py_False) {
    msprobe_add_bool(builder, key, "bool", value == Py_True);
    return true;
  }
  if (PyLong_CheckExact(value)) return add_integer(builder, key, value);
  if (PyFloat_CheckExact(value)) {
    msprobe_add_double(builder, key, "float", PyFloat_AsDouble(value));
    return true;
  }
  if (PyUnicode_CheckExact(value)) {
    const Utf8 text(value);
    if (text.text() == nullptr) return false;
    msprobe_add_text(builder, key, "str", text.text(), text.size());
    return true;
  }
  if (PyTuple_CheckExact(value)) return add_tuple(builder, key, value, depth);
  if (PyList_CheckExact(value)) return add_list(builder, key, value, depth);
  if (PyDict_CheckExact(value)) return add_dict(builder, key, value, depth);
  return add_described(builder, key, value, depth);
}

Section::Section(const msprobe_event& event, msprobe_section section)
    : exceptions_(std::uncaught_exceptions()) {
  if (msprobe_section_begin(state.session, &event, section, &builder_) != MSPROBE_OK) builder_ = nullptr;
  this_thread.wants_elements = (event.wants & MSPROBE_WANT_TENSORS) != 0;
  this_thread.wants_files = (event.wants & MSPROBE_WANT_FILES) != 0;
}

Section::~Section() {
  if (builder_ == nullptr) return;
  if (failed_ || std::uncaught_exceptions() > exceptions_) {
    msprobe_builder_abort(builder_);
  } else {
    msprobe_builder_commit(builder_);
  }
  measure_on_gpus();
}

void Section::add(const char* key, PyObject* value) {
  if (failed_ || builder_ == nullptr) return;
  if (!add_value(builder_, key, value)) {
    failed_ = true;
    log_exception("recording a value");
  }
}

void Section::add_all(PyObject* values, uint64_t masked) {
  if (!PyTuple_Check(values)) {
    if ((masked & 1U) != 0 && builder_ != nullptr) {
      msprobe_add_null(builder_, nullptr);
    } else {
      add(nullptr, values);
    }
    ++position_;
    return;
  }
  const Py_ssize_t size = PyTuple_Size(values);
  for (Py_ssize_t at = 0; at < size; ++at, ++position_) {
    const bool hidden = position_ < 64 && ((masked >> position_) & 1U) != 0;
    if (hidden && builder_ != nullptr && !failed_) {
      msprobe_add_null(builder_, nullptr);
    } else {
      add(nullptr, PyTuple_GetItem(values, at));
    }
  }
}

void Section::add_members(PyObject* members, const char* masked) {
  if (members == nullptr || !PyDict_Check(members) || failed_) return;
  const bool walked = for_members(members, [&](const char* name, PyObject* member) {
    if (masked != nullptr && std::strcmp(name, masked) == 0) {
      msprobe_add_null(builder_, name);
    } else {
      add(name, member);
    }
    return true;
  });
  if (!walked) {
    failed_ = true;
    log_exception("recording keyword arguments");
  }
}

void Section::add_values(PyObject* members) {
  if (members == nullptr || !PyDict_Check(members) || failed_) return;
  if (!for_members(members, [&](const char*, PyObject* member) {
        add(nullptr, member);
        return true;
      })) {
    failed_ = true;
    log_exception("recording keyword arguments");
  }
}

}  // namespace msprobe::python
