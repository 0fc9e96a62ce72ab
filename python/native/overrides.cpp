// SPDX-License-Identifier: Apache-2.0
#include "overrides.hpp"

#include "state.hpp"

namespace msprobe::python {
namespace {

bool asks(PyObject* tuple) {
  const Ref answer(PyObject_CallFunctionObjArgs(state.has_override, tuple, nullptr));
  if (!answer) PyErr_Clear();
  return answer.get() == Py_True;
}

bool any_inside(PyObject* value) {
  if (!PyList_Check(value) && !PyTuple_Check(value)) return false;
  const Ref members(PySequence_Tuple(value));
  if (!members) PyErr_Clear();
  return members && PyTuple_Size(members.get()) != 0 && asks(members.get());
}

}  // namespace

bool is_overridden(PyObject* args, PyObject* kwargs) {
  if (state.has_override == nullptr) return false;
  const ExceptionGuard guard;
  if (PyTuple_Size(args) != 0 && asks(args)) return true;
  const Py_ssize_t size = PyTuple_Size(args);
  for (Py_ssize_t at = 0; at < size; ++at) {
    if (any_inside(PyTuple_GetItem(args, at))) return true;
  }
  if (kwargs == nullptr || !PyDict_Check(kwargs) || PyDict_Size(kwargs) == 0) return false;
  const Ref values(PyDict_Values(kwargs));
  const Ref tuple(values ? PySequence_Tuple(values.get()) : nullptr);
  if (!tuple) PyErr_Clear();
  return tuple && asks(tuple.get());
}

PyObject* call_overridden(PyObject* function, PyObject* args, PyObject* kwargs) {
  return PyObject_CallFunctionObjArgs(state.call_unwrapped, function, args,
                                      kwargs == nullptr ? Py_None : kwargs, nullptr);
}

Unseen::Unseen(bool wanted) {
  if (!wanted || state.plain_functions == nullptr) return;
  const ExceptionGuard guard;
  guard_ = Ref(PyObject_CallFunctionObjArgs(state.plain_functions, nullptr));
  const Ref entered(guard_ ? PyObject_CallMethod(guard_.get(), "__enter__", nullptr) : nullptr);
  if (entered) return;
  PyErr_Clear();
  guard_ = Ref();
}

Unseen::~Unseen() {
  if (!guard_) return;
  const ExceptionGuard guard;
  const Ref left(PyObject_CallMethod(guard_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) PyErr_Clear();
}

}  // namespace msprobe::python
