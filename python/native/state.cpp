// SPDX-License-Identifier: Apache-2.0
#include "state.hpp"

namespace msprobe::python {

Names names;
State state;
thread_local ThreadState this_thread;

bool make_names() {
  const auto intern = [](const char* text) { return PyUnicode_InternFromString(text); };
  names = Names{
      intern("dtype"),          intern("shape"),
      intern("layout"),         intern("is_cpu"),
      intern("is_cuda"),        intern("requires_grad"),
      intern("_version"),       intern("grad_fn"),
      intern("register_hook"),  intern("f_back"),
      intern("f_code"),         intern("f_lasti"),
      intern("items"),          intern("__array_interface__"),
      intern("hook_arguments"), intern("hook_outputs"),
  };
  return PyErr_Occurred() == nullptr;
}

void log_exception(const char* where) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == nullptr) return;
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr && value != nullptr) PyException_SetTraceback(value, traceback);
  const Ref type_ref(type);
  const Ref value_ref(value);
  const Ref traceback_ref(traceback);
  if (PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt) != 0) {
    PyErr_SetInterrupt();
    return;
  }
  if (state.session == nullptr) return;
  std::string kind = where;
  std::string text = where;
  if (state.format_exception != nullptr && value != nullptr) {
    const Ref described(PyObject_CallFunctionObjArgs(state.format_exception, value, nullptr));
    if (described && PyTuple_Check(described.get()) && PyTuple_Size(described.get()) == 2) {
      const Utf8 name(PyTuple_GetItem(described.get(), 0));
      const Utf8 details(PyTuple_GetItem(described.get(), 1));
      if (name.text() != nullptr && details.text() != nullptr) {
        kind += std::string(": ") + name.text();
        text += std::string(": ") + details.text();
      }
    }
    PyErr_Clear();
  }
  msprobe_log_error(state.session, kind.c_str(), text.c_str());
}

void log_failure(const char* where, const char* what) noexcept {
  if (state.session != nullptr) msprobe_log_error(state.session, where, what);
}

bool is_being_traced() {
  for (PyObject* question : {state.tracing_state, state.compile_context}) {
    if (question == nullptr || question == Py_None) continue;
    const Ref answer(PyObject_CallFunctionObjArgs(question, nullptr));
    if (!answer) PyErr_Clear();
    if (answer && answer.get() != Py_None) return true;
  }
  return false;
}

PyObject* raise_status(msprobe_status status) {
  const Ref arguments(Py_BuildValue("(is)", static_cast<int>(status), msprobe_last_error()));
  if (arguments) PyErr_SetObject(PyExc_RuntimeError, arguments.get());
  return nullptr;
}

PyObject* none_or_raise(msprobe_status status) {
  if (status < 0) return raise_status(status);
  Py_RETURN_NONE;
}

}  // namespace msprobe::python
