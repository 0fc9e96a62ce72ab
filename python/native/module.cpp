// SPDX-License-Identifier: Apache-2.0
// The extension module msprobe._native: the hot paths of the front end for Python.
#include "calls.hpp"
#include "session.hpp"
#include "tensors.hpp"

namespace {

using namespace msprobe::python;

PyMethodDef methods[] = {
    {"bind", bind, METH_O, "bind(namespace): what the extension needs of the framework"},
    {"open", open_session, METH_VARARGS,
     "open(path, text, task, dump_path, level, step, framework, file_suffix)"},
    {"close", close_session, METH_NOARGS, "writes everything and ends the session"},
    {"disown", disown, METH_NOARGS, "in a child after fork(): the session is its parent's"},
    {"info", info, METH_NOARGS, "what the configuration comes to, as a dict"},
    {"setting", setting, METH_VARARGS, "setting(key) -> JSON text"},
    {"running", running, METH_NOARGS, "whether events are recorded now"},
    {"start", start, METH_NOARGS, "start() -> (decision, first time)"},
    {"stop", stop, METH_NOARGS, "ends recording of forward events"},
    {"step", step, METH_NOARGS, "ends the step"},
    {"flush", flush, METH_NOARGS, "writes what is recorded"},
    {"set_rank", set_rank, METH_VARARGS, "set_rank(rank)"},
    {"set_init_step", set_init_step, METH_VARARGS, "set_init_step(step)"},
    {"set_recording", set_recording, METH_VARARGS, "set_recording(on)"},
    {"set_tokens", set_tokens, METH_VARARGS, "set_tokens(begin, end)"},
    {"reload", reload, METH_NOARGS, "reload() -> (status, changed, error)"},
    {"log_error", log_error, METH_VARARGS, "log_error(kind, text)"},
    {"intern", intern, METH_VARARGS, "intern(name) -> number"},
    {"set_pseudo_parent", set_pseudo_parent, METH_VARARGS, "set_pseudo_parent(name or None)"},
    {"set_micro_step", set_micro_step, METH_VARARGS, "set_micro_step(number)"},
    {"changed_unseen", changed_unseen, METH_NOARGS, "tensors changed without a new version"},
    {"may_change_unseen", may_change_unseen, METH_NOARGS,
     "an alias exists that writes without a new version"},
    {"set_compatible", set_compatible, METH_VARARGS, "set_compatible(on)"},
    {"wants_elements", wants_elements, METH_NOARGS, "whether elements of tensors are needed now"},
    {"save", save, METH_VARARGS, "save(value, name, gradient) -> number or None"},
    {"fill_gradient", fill_saved_gradient, METH_VARARGS, "fill_gradient(entry, path, tensor)"},
    {"fill_statistics", fill_statistics, METH_VARARGS, "fill_statistics(slot, max, min, mean, norm, ...)"},
    {"add_api", add_api, METH_VARARGS, "add_api(name, distributed, dropout, masks...) -> number"},
    {"call_api", call_api, METH_VARARGS, "call_api(number, function, args, kwargs)"},
    {"call_quietly", call_quietly, METH_VARARGS, "call_quietly(function, *args): without being recorded"},
    {"enter_module", enter_module, METH_VARARGS, "enter_module(name, args, kwargs) -> Call or None"},
    {"parameter_gradient", parameter_gradient, METH_VARARGS,
     "parameter_gradient(module, name, expected, tensor)"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "msprobe._native",
    "The hot paths of msprobe's front end.",
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  if (!make_names() || !make_tensor_callback()) return nullptr;
  Ref module(PyModule_Create(&definition));
  if (!module) return nullptr;
  PyObject* type = make_call_type();
  if (type == nullptr) return nullptr;
  Py_INCREF(type);
  if (PyModule_AddObject(module.get(), "Call", type) != 0) {
    Py_DECREF(type);
    return nullptr;
  }
  if (PyModule_AddStringConstant(module.get(), "version", msprobe_version()) != 0) return nullptr;
  return module.release();
}
