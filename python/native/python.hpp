// SPDX-License-Identifier: Apache-2.0
// Small helpers over CPython's limited API: owned references, interned names, set-aside exceptions.
#pragma once

#include <Python.h>

#include <utility>

namespace msprobe::python {

/// An owned reference; may be empty.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : object_(owned) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
    Py_XDECREF(old);
    return *this;
  }
  Ref(const Ref&) = delete;
  Ref& operator=(const Ref&) = delete;
  ~Ref() { Py_XDECREF(object_); }

  static Ref borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

/// The exception in flight, put aside while our own code runs.
class ExceptionGuard {
 public:
  ExceptionGuard() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ExceptionGuard(const ExceptionGuard&) = delete;
  ExceptionGuard& operator=(const ExceptionGuard&) = delete;
  ~ExceptionGuard() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* traceback_ = nullptr;
};

/// UTF-8 of a str. Lone surrogates become question marks: JSON knows none.
class Utf8 {
 public:
  explicit Utf8(PyObject* text) {
    bytes_ = Ref(PyUnicode_AsEncodedString(text, "utf-8", "replace"));
    if (bytes_ && PyBytes_AsStringAndSize(bytes_.get(), &text_, &size_) != 0) text_ = nullptr;
  }
  /// nullptr if it failed; then a Python exception is set.
  const char* text() const { return text_; }
  size_t size() const { return static_cast<size_t>(size_); }

 private:
  Ref bytes_;
  char* text_ = nullptr;
  Py_ssize_t size_ = 0;
};

/// Attribute names, made once.
struct Names {
  PyObject* dtype;
  PyObject* shape;
  PyObject* layout;
  PyObject* is_cpu;
  PyObject* is_cuda;
  PyObject* requires_grad;
  PyObject* version;
  PyObject* grad_fn;
  PyObject* register_hook;
  PyObject* frame_back;
  PyObject* frame_code;
  PyObject* frame_instruction;
  PyObject* items;
  PyObject* array_interface;
  PyObject* hook_arguments;
  PyObject* hook_outputs;
};
extern Names names;
bool make_names();

}  // namespace msprobe::python
