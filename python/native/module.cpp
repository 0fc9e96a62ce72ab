// SPDX-License-Identifier: Apache-2.0
// The extension module msprobe._native: the hot paths of the front end for Python.
#include "calls.hpp"
#include "gpu.hpp"
#include "gradients.hpp"
#include "monitor.hpp"
#include "response.hpp"
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
    {"set_risk", set_risk, METH_VARARGS, "set_risk(operation, core or low)"},
    {"set_init_step", set_init_step, METH_VARARGS, "set_init_step(step)"},
    {"set_dump_path", set_dump_path, METH_VARARGS, "set_dump_path(path)"},
    {"restart_step", restart_step, METH_NOARGS, "the numbers of the step begin anew"},
    {"drop_step", drop_step, METH_NOARGS, "ends a step in which nothing ran: its folder goes"},
    {"set_recording", set_recording, METH_VARARGS, "set_recording(on)"},
    {"set_tokens", set_tokens, METH_VARARGS, "set_tokens(begin, end)"},
    {"reload", reload, METH_NOARGS, "reload() -> (status, changed, error)"},
    {"log_error", log_error, METH_VARARGS, "log_error(kind, text)"},
    {"intern", intern, METH_VARARGS, "intern(name) -> number"},
    {"set_pseudo_parent", set_pseudo_parent, METH_VARARGS, "set_pseudo_parent(name or None)"},
    {"describe_training", describe_training, METH_VARARGS, "describe_training(json)"},
    {"set_micro_step", set_micro_step, METH_VARARGS, "set_micro_step(number)"},
    {"changed_unseen", changed_unseen, METH_NOARGS, "tensors changed without a new version"},
    {"may_change_unseen", may_change_unseen, METH_NOARGS,
     "an alias exists that writes without a new version"},
    {"set_compatible", set_compatible, METH_VARARGS, "set_compatible(on)"},
    {"wants_elements", wants_elements, METH_NOARGS, "whether elements of tensors are needed"},
    {"wants_files", wants_files, METH_NOARGS, "whether they are needed for a file"},
    {"elements_may_come_later", elements_may_come_later, METH_NOARGS, "whether fill_tensor() may bring them"},
    {"fill_tensor", fill_tensor, METH_VARARGS, "fill_tensor(slot, tensor): elements that come later"},
    {"save", save, METH_VARARGS, "save(value, name, gradient) -> number or None"},
    {"fill_gradient", fill_saved_gradient, METH_VARARGS, "fill_gradient(entry, path, tensor)"},
    {"fill_statistics", fill_statistics, METH_VARARGS, "fill_statistics(slot, max, min, mean, norm, ...)"},
    {"gpu_compile", gpu_compile, METH_VARARGS,
     "gpu_compile(driver or None, compiler, architecture or None, ordinal) -> the kernel's code for that "
     "GPU"},
    {"gpu_open", gpu_open, METH_VARARGS,
     "gpu_open(driver or None, architecture or None, code, ordinal): from now on tensors there are measured "
     "by the "
     "collector's kernel"},
    {"gpu_takes", gpu_takes, METH_O,
     "gpu_takes(tensor) -> whether that kernel makes all that is wanted of it now"},
    {"gpu_drain", gpu_drain, METH_NOARGS, "gpu_drain(): waits for all GPUs, and fills what waits for them"},
    {"add_api", add_api, METH_VARARGS, "add_api(name, distributed, dropout, masks...) -> number"},
    {"call_api", call_api, METH_VARARGS, "call_api(number, function, args, kwargs)"},
    {"call_quietly", call_quietly, METH_VARARGS, "call_quietly(function, *args): without being recorded"},
    {"enter_module", enter_module, METH_VARARGS, "enter_module(name, args, kwargs, buffers) -> Call or None"},
    {"bind_autograd", bind_autograd, METH_VARARGS,
     "bind_autograd(sequence_number, accumulation_of, combine, queue_callback)"},
    {"parameter_gradient", parameter_gradient, METH_VARARGS,
     "parameter_gradient(module, name, expected, tensor)"},
    {"probe_gradient", probe_gradient, METH_VARARGS, "probe_gradient(parameter, host tensor or array)"},
    {"judge_response", judge_response, METH_VARARGS,
     "judge_response(logprobs, tokens, categories, last token, width, settings) -> kind of illness"},
    {nullptr, nullptr, 0, nullptr},
};

// The constants of msprobe/collector.h.
constexpr struct {
  const char* name;
  long value;
} constants[] = {
    {"INVALID_SCOPE", MSPROBE_INVALID_SCOPE},
    {"INVALID_FILE", MSPROBE_INVALID_FILE},
    {"FAILED", MSPROBE_FAILED},
    {"RECORDING", MSPROBE_RECORDING},
    {"NOT_NOW", MSPROBE_NOT_NOW},
    {"ALL_DONE", MSPROBE_ALL_DONE},
    {"DTYPE_OTHER", MSPROBE_DTYPE_OTHER},
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

// {name: (number, bytes of one element, whether NumPy has it)}
Ref make_dtypes() {
  Ref table(PyDict_New());
  msprobe_dtype_info info{};
  for (uint32_t dtype = 0; table && msprobe_get_dtype(dtype, &info) == MSPROBE_OK; ++dtype) {
    const Ref row(Py_BuildValue("IIO", dtype, info.size, info.numpy[0] != '\0' ? Py_True : Py_False));
    if (!row || PyDict_SetItemString(table.get(), info.name, row.get()) != 0) return Ref();
  }
  return table;
}

bool add_object(PyObject* module, const char* name, PyObject* owned) {
  if (owned == nullptr || PyModule_AddObject(module, name, owned) == 0) return owned != nullptr;
  Py_DECREF(owned);
  return false;
}

}  // namespace

PyMODINIT_FUNC PyInit__native() {
  if (!make_names() || !make_tensor_callback()) return nullptr;
  Ref module(PyModule_Create(&definition));
  if (!module) return nullptr;
  PyObject* type = make_call_type();
  if (type == nullptr) return nullptr;
  Py_INCREF(type);
  if (!add_object(module.get(), "Call", type)) return nullptr;
  if (!add_object(module.get(), "Gradients", make_gradients_type())) return nullptr;
  if (!add_object(module.get(), "Monitor", make_monitor_type())) return nullptr;
  if (!add_object(module.get(), "dtypes", make_dtypes().release())) return nullptr;
  if (PyModule_AddStringConstant(module.get(), "version", msprobe_version()) != 0) return nullptr;
  for (const auto& [name, value] : constants) {
    if (PyModule_AddIntConstant(module.get(), name, value) != 0) return nullptr;
  }
  return module.release();
}
