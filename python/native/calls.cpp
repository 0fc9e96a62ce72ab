// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <algorithm>
#include <vector>

#include "gpu.hpp"
#include "overrides.hpp"
#include "stacks.hpp"
#include "tensors.hpp"
#include "values.hpp"

namespace msprobe::python {
namespace {

// A recorded call. When called, it is the hook of its autograd node.
struct Call {
  PyObject_HEAD msprobe_event forward;
  msprobe_event backward;
  int in_backward;
  uint64_t masked_outputs;
};

PyObject* call_type = nullptr;

Call* as_call(PyObject* object) {
  return reinterpret_cast<Call*>(object);
}

PyObject* new_call(const msprobe_event& event, uint64_t masked_outputs = 0) {
  Call* call = PyObject_New(Call, reinterpret_cast<PyTypeObject*>(call_type));
  if (call == nullptr) return nullptr;
  call->forward = event;
  call->backward = msprobe_event{};
  call->in_backward = 0;
  call->masked_outputs = masked_outputs;
  return reinterpret_cast<PyObject*>(call);
}

void free_call(PyObject* self) {
  Call* call = as_call(self);
  // The backward began but did not end, as happens for an in-place operation.
  if (call->in_backward != 0 && state.session != nullptr) msprobe_leave(state.session, &call->backward);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

void record_inputs(const msprobe_event& event, PyObject* args, PyObject* kwargs, const Api* api) {
  if ((event.wants & MSPROBE_WANT_STACK) != 0) use_current_stack(event);
  if ((event.wants & MSPROBE_WANT_INPUT) == 0) return;
  if (Section section(event, MSPROBE_INPUT); section)
    section.add_all(args, api != nullptr ? api->masked_inputs : 0);
  if (Section section(event, MSPROBE_KWARGS); section) {
    section.add_members(
        kwargs, api != nullptr && !api->masked_keyword.empty() ? api->masked_keyword.c_str() : nullptr);
  }
}

// The members of a namedtuple as a dict; an empty reference for anything else.
Ref named_fields(PyObject* output) {
  if (!PyTuple_Check(output) || PyTuple_CheckExact(output)) return {};
  Ref described(PyObject_CallFunctionObjArgs(state.describe, output, nullptr));
  if (!described) log_exception("recording a result");
  return described && PyDict_Check(described.get()) ? std::move(described) : Ref();
}

void record_output(const msprobe_event& event, PyObject* output, uint64_t masked) {
  if ((event.wants & MSPROBE_WANT_OUTPUT) == 0) return;
  if (const Ref fields = named_fields(output); fields) {
    if (Section section(event, MSPROBE_NAMED_OUTPUT); section) section.add_members(fields.get());
    return;
  }
  if (Section section(event, MSPROBE_OUTPUT); section) section.add_all(output, masked);
}

// Functions of torch.distributed work in place, so their output is their arguments after the call.
void record_arguments_as_output(const msprobe_event& event, PyObject* args, PyObject* kwargs,
                                uint64_t masked) {
  if ((event.wants & MSPROBE_WANT_OUTPUT) == 0) return;
  if (Section section(event, MSPROBE_OUTPUT); section) {
    section.add_all(args, masked);
    section.add_values(kwargs);
  }
}

// Either argument may be None if it arrives at another time.
void record_gradients(const msprobe_event& event, PyObject* grad_inputs, PyObject* grad_outputs) {
  if ((event.wants & MSPROBE_WANT_INPUT) != 0 && grad_outputs != Py_None) {
    if (Section section(event, MSPROBE_INPUT); section) section.add_all(grad_outputs);
  }
  if ((event.wants & MSPROBE_WANT_OUTPUT) != 0 && grad_inputs != Py_None) {
    if (Section section(event, MSPROBE_OUTPUT); section) section.add_all(grad_inputs);
  }
}

bool is_tensor(PyObject* value) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
  if (type == state.tensor_type || type == state.parameter_type) return true;
  const int is_one = PyObject_IsInstance(value, state.tensor_type);
  if (is_one < 0) PyErr_Clear();
  return is_one == 1;
}

// The first tensor of an output; its backward represents the call's.
Ref first_tensor(PyObject* output) {
  Ref value = Ref::borrowed(output);
  for (int depth = 0; depth < 64 && value; ++depth) {
    if (is_tensor(value.get())) return value;
    if (PyTuple_Check(value.get())) {
      if (PyTuple_Size(value.get()) == 0) return {};
      value = Ref::borrowed(PyTuple_GetItem(value.get(), 0));
    } else if (PyList_Check(value.get())) {
      if (PyList_Size(value.get()) == 0) return {};
      value = Ref::borrowed(PyList_GetItem(value.get(), 0));
    } else if (PyDict_Check(value.get())) {
      PyObject* key = nullptr;
      PyObject* member = nullptr;
      Py_ssize_t at = 0;
      Ref found;
      while (PyDict_Next(value.get(), &at, &key, &member) != 0) {
        if (!is_tensor(member)) continue;
        found = Ref::borrowed(member);
        break;
      }
      return found;
    } else {
      return {};
    }
  }
  return {};
}

// The tensors among the arguments, with their versions before the call. A function that returns one of them
// unchanged has no backward.
class Before {
 public:
  void note_all(PyObject* args, PyObject* kwargs) {
    const Py_ssize_t size = PyTuple_Size(args);
    for (Py_ssize_t at = 0; at < size; ++at) note(PyTuple_GetItem(args, at));
    if (kwargs == nullptr || !PyDict_Check(kwargs)) return;
    PyObject* key = nullptr;
    PyObject* value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(kwargs, &position, &key, &value) != 0) note(value);
  }

  enum class Fate : uint8_t { no_argument, unchanged, changed };
  Fate fate_of(PyObject* tensor) const {
    for (size_t at = 0; at < count_; ++at) {
      if (tensors_[at] == tensor)
        return version_of(tensor) == versions_[at] ? Fate::unchanged : Fate::changed;
    }
    return Fate::no_argument;
  }

 private:
  void note(PyObject* value) {
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (count_ == kMost || (type != state.tensor_type && type != state.parameter_type)) return;
    tensors_[count_] = value;
    versions_[count_] = version_of(value);
    ++count_;
  }

  static constexpr size_t kMost = 8;
  PyObject* tensors_[kMost] = {};  // borrowed; the arguments keep them alive
  int64_t versions_[kMost] = {};
  size_t count_ = 0;
};

// Does the dropout drop nothing? Its probability is the second argument or the keyword p.
bool drops_nothing(PyObject* args, PyObject* kwargs) {
  Ref p;
  if (PyTuple_Size(args) >= 2) {
    p = Ref::borrowed(PyTuple_GetItem(args, 1));
  } else if (kwargs != nullptr && PyDict_Check(kwargs)) {
    p = Ref::borrowed(PyDict_GetItemString(kwargs, "p"));
  }
  if (!p) return false;
  const double value = PyFloat_AsDouble(p.get());
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return false;
  }
  return value == 0.0;
}

void attach_backward(const Api& api, const msprobe_event& event, PyObject* output, PyObject* args,
                     PyObject* kwargs, const Before& before) {
  if (api.dropout && drops_nothing(args, kwargs)) return;
  const Ref tensor = first_tensor(output);
  if (!tensor) return;
  const Ref requires_grad(PyObject_GetAttr(tensor.get(), names.requires_grad));
  if (!requires_grad) return log_exception("hooking a backward");
  if (requires_grad.get() != Py_True) return;
  const Ref enabled(PyObject_CallFunctionObjArgs(state.is_grad_enabled, nullptr));
  if (!enabled) return log_exception("hooking a backward");
  if (enabled.get() != Py_True) return;
  const Before::Fate fate = before.fate_of(tensor.get());
  if (fate == Before::Fate::unchanged) return;
  const bool changed = fate == Before::Fate::changed && state.node_of_change != nullptr;
  const Ref grad_fn(changed ? PyObject_CallFunctionObjArgs(state.node_of_change, tensor.get(), nullptr)
                            : PyObject_GetAttr(tensor.get(), names.grad_fn));
  if (!grad_fn) return log_exception("hooking a backward");
  if (grad_fn.get() == Py_None) return;
  const Ref hook(new_call(event));
  const Ref handle(hook ? PyObject_CallMethodObjArgs(grad_fn.get(), names.register_hook, hook.get(), nullptr)
                        : nullptr);
  if (!handle) log_exception("hooking a backward");
}

// Records the gradients of a call through identity functions around its arguments and its result. This is for
// a framework whose results do not show the nodes of their backward.
class Border {
 public:
  /// Replaces the arguments by those to call with: the given ones, or new ones.
  void hook_arguments(const Api& api, const msprobe_event& event, PyObject** args, PyObject** kwargs) {
    const Ref call(new_call(event));
    PyObject* by_argument = api.by_argument ? Py_True : Py_False;
    if (call)
      backward_ = Ref(PyObject_CallFunctionObjArgs(state.make_backward, call.get(), by_argument, nullptr));
    PyObject* keywords = *kwargs != nullptr ? *kwargs : Py_None;
    if (backward_) {
      hooked_ =
          Ref(PyObject_CallMethodObjArgs(backward_.get(), names.hook_arguments, *args, keywords, nullptr));
    }
    PyObject* hooked_kwargs = nullptr;
    PyObject* hooked_args = nullptr;
    if (!hooked_ || PyArg_ParseTuple(hooked_.get(), "O!O!", &PyTuple_Type, &hooked_args, &PyDict_Type,
                                     &hooked_kwargs) == 0) {
      log_exception("hooking a backward");
      backward_ = Ref();
      return;
    }
    *args = hooked_args;
    *kwargs = hooked_kwargs;
  }
  /// The result to return: `result`, whose reference it takes over, or a new one.
  PyObject* hook_outputs(PyObject* result) const {
    if (!backward_) return result;
    PyObject* hooked = PyObject_CallMethodObjArgs(backward_.get(), names.hook_outputs, result, nullptr);
    if (hooked == nullptr) {
      log_exception("hooking a backward");
      return result;
    }
    Py_DECREF(result);
    return hooked;
  }

 private:
  Ref backward_;
  Ref hooked_;  // keeps the arguments alive
};

// Calls the function with `depth` raised, so that the calls inside it are not recorded.
PyObject* call_inside(PyObject* function, PyObject* args, PyObject* kwargs, bool overridden) {
  ++this_thread.depth;
  PyObject* result =
      overridden ? call_overridden(function, args, kwargs) : PyObject_Call(function, args, kwargs);
  --this_thread.depth;
  return result;
}

void leave_failed(msprobe_event* event) {
  const ExceptionGuard guard;
  msprobe_leave(state.session, event);
}

// Whether the result is a transfer still under way that Python will record when it is waited for.
bool is_asynchronous(const Api& api, const msprobe_event& event, PyObject* result, PyObject* args,
                     PyObject* kwargs) {
  if (result == Py_None || state.asynchronous == nullptr) return false;
  const Ref call(new_call(event, api.masked_outputs));
  const Ref taken(
      call ? PyObject_CallFunctionObjArgs(state.asynchronous, call.get(), result, args, kwargs, nullptr)
           : nullptr);
  if (!taken) {
    log_exception("following an asynchronous communication");
    return false;
  }
  return taken.get() == Py_True;
}

// For tasks free_benchmark and acc_check: the front end makes the call, and repeats it with perturbed inputs
// or has it judged. Errors of the function itself propagate; the front end handles all others.
PyObject* call_in_front_end(size_t number, const msprobe_event& event, PyObject* function, PyObject* args,
                            PyObject* kwargs) {
  ++this_thread.depth;
  PyObject* result = PyObject_CallFunction(state.call_again, "nIOOO", static_cast<Py_ssize_t>(number),
                                           static_cast<unsigned int>(event.number), function, args,
                                           kwargs != nullptr ? kwargs : Py_None);
  --this_thread.depth;
  return result;
}

PyObject* record_call(size_t number, const Api& api, PyObject* function, PyObject* args, PyObject* kwargs) {
  msprobe_event event{};
  const msprobe_status status = msprobe_enter(state.session, MSPROBE_KIND_API, api.name, &event);
  const bool overridden = is_overridden(args, kwargs);
  if (status != MSPROBE_OK) {
    PyObject* result = call_inside(function, args, kwargs, overridden);
    if (result == nullptr) {
      leave_failed(&event);
    } else {
      msprobe_leave(state.session, &event);
    }
    return result;
  }
  const bool hook_backward =
      (event.wants & MSPROBE_WANT_BACKWARD) != 0 && !api.distributed && !api.forward_only;
  const bool by_border = hook_backward && state.make_backward != nullptr;
  Border border;
  PyObject* used_args = args;
  PyObject* used_kwargs = kwargs;
  {
    const Busy busy;
    const Unseen unseen(overridden);
    guarded("recording arguments", [&] { record_inputs(event, args, kwargs, &api); });
    if (by_border)
      guarded("hooking a backward", [&] { border.hook_arguments(api, event, &used_args, &used_kwargs); });
  }
  if (api.distributed) ++state.epoch;
  Before before;
  if (hook_backward && !by_border && !state.python_compatible) {
    const Unseen unseen(overridden);
    before.note_all(args, kwargs);
  }
  const bool in_front_end =
      (event.wants & MSPROBE_WANT_AGAIN) != 0 && state.call_again != nullptr && !overridden;
  PyObject* result = in_front_end ? call_in_front_end(number, event, function, args, kwargs)
                                  : call_inside(function, used_args, used_kwargs, overridden);
  if (result == nullptr) {
    leave_failed(&event);
    return nullptr;
  }
  {
    const Busy busy;
    const Unseen unseen(overridden);
    guarded("recording a result", [&] {
      if (!api.distributed) {
        record_output(event, result, api.masked_outputs);
      } else if (!is_asynchronous(api, event, result, args, kwargs)) {
        record_arguments_as_output(event, args, kwargs, api.masked_outputs);
      }
      if (by_border) {
        result = border.hook_outputs(result);
      } else if (hook_backward) {
        attach_backward(api, event, result, args, kwargs, before);
      }
      collect_released();
    });
  }
  msprobe_leave(state.session, &event);
  return result;
}

// ------------------------------------------------------------------ methods of Call

PyObject* run_as_hook(PyObject* self, PyObject* args, PyObject*) {
  PyObject* grad_inputs = nullptr;
  PyObject* grad_outputs = nullptr;
  if (state.session == nullptr || this_thread.busy != 0) Py_RETURN_NONE;
  if (PyArg_ParseTuple(args, "OO", &grad_inputs, &grad_outputs) == 0) {
    log_exception("recording a backward");
    Py_RETURN_NONE;
  }
  const Busy busy;
  msprobe_event event{};
  if (msprobe_enter_backward(state.session, &as_call(self)->forward, &event) == MSPROBE_OK) {
    guarded("recording a backward", [&] { record_gradients(event, grad_inputs, grad_outputs); });
  }
  msprobe_leave(state.session, &event);
  guarded("recording a backward", collect_released);
  Py_RETURN_NONE;
}

PyObject* leave_module(PyObject* self, PyObject* arguments) {
  PyObject* output = nullptr;
  PyObject* parameters = nullptr;
  int failed = 0;
  if (PyArg_ParseTuple(arguments, "OOp", &output, &parameters, &failed) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  msprobe_event& event = as_call(self)->forward;
  const Busy busy;
  if (failed == 0) {
    const Ref outputs(PyTuple_Pack(1, output));
    const Unseen unseen(outputs && is_overridden(outputs.get(), nullptr));
    guarded("recording a result", [&] {
      record_output(event, output, 0);
      if ((event.wants & MSPROBE_WANT_PARAMETERS) == 0) return;
      if (Section section(event, MSPROBE_PARAMETERS); section) section.add_members(parameters);
    });
  }
  msprobe_event left = event;
  msprobe_leave(state.session, &left);
  guarded("recording a result", collect_released);
  Py_RETURN_NONE;
}

PyObject* begin_backward(PyObject* self, PyObject*) {
  Call* call = as_call(self);
  if (state.session == nullptr || call->in_backward != 0) Py_RETURN_NONE;
  call->backward = msprobe_event{};
  call->in_backward = 1;
  msprobe_enter_backward(state.session, &call->forward, &call->backward);
  Py_RETURN_NONE;
}

PyObject* end_backward(PyObject* self, PyObject* arguments) {
  PyObject* grad_inputs = nullptr;
  PyObject* grad_outputs = nullptr;
  int more = 0;
  if (PyArg_ParseTuple(arguments, "OO|p", &grad_inputs, &grad_outputs, &more) == 0) return nullptr;
  Call* call = as_call(self);
  if (state.session == nullptr) Py_RETURN_NONE;
  const Busy busy;
  if (call->in_backward == 0) {
    call->backward = msprobe_event{};
    msprobe_enter_backward(state.session, &call->forward, &call->backward);
  }
  call->in_backward = more;
  guarded("recording a backward", [&] { record_gradients(call->backward, grad_inputs, grad_outputs); });
  if (more == 0) msprobe_leave(state.session, &call->backward);
  guarded("recording a backward", collect_released);
  Py_RETURN_NONE;
}

PyObject* hold(PyObject* self, PyObject*) {
  return none_or_raise(msprobe_hold(state.session, &as_call(self)->forward));
}

PyObject* complete(PyObject* self, PyObject* arguments) {
  PyObject* args = nullptr;
  PyObject* kwargs = nullptr;
  if (PyArg_ParseTuple(arguments, "OO", &args, &kwargs) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  const Busy busy;
  guarded("recording a communication", [&] {
    record_arguments_as_output(as_call(self)->forward, args, kwargs, as_call(self)->masked_outputs);
  });
  msprobe_release(state.session, &as_call(self)->forward);
  ++state.epoch;
  Py_RETURN_NONE;
}

PyObject* wants_backward(PyObject* self, PyObject*) {
  return PyBool_FromLong((as_call(self)->forward.wants & MSPROBE_WANT_BACKWARD) != 0 ? 1 : 0);
}

PyMethodDef call_methods[] = {
    {"leave", leave_module, METH_VARARGS, "leave(output, parameters, failed): ends the call of a module"},
    {"wants_backward", wants_backward, METH_NOARGS, "whether its backward is recorded"},
    {"begin_backward", begin_backward, METH_NOARGS, "its backward begins"},
    {"end_backward", end_backward, METH_VARARGS, "end_backward(grad_inputs, grad_outputs, more)"},
    {"hold", hold, METH_NOARGS, "its output comes later"},
    {"complete", complete, METH_VARARGS, "complete(args, kwargs): the arguments are its output"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* make_call_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(free_call)},
      {Py_tp_call, reinterpret_cast<void*>(run_as_hook)},
      {Py_tp_methods, static_cast<void*>(call_methods)},
      {0, nullptr},
  };
  PyType_Spec spec = {"msprobe._native.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, slots};
  call_type = PyType_FromSpec(&spec);
  return call_type;
}

PyObject* call_api(PyObject*, PyObject* arguments) {
  if (PyTuple_Size(arguments) != 4) {
    PyErr_SetString(PyExc_TypeError, "call_api takes 4 arguments");
    return nullptr;
  }
  PyObject* function = PyTuple_GetItem(arguments, 1);
  PyObject* args = PyTuple_GetItem(arguments, 2);
  PyObject* kwargs = PyTuple_GetItem(arguments, 3);
  if (state.session == nullptr || this_thread.busy != 0 || this_thread.depth != 0) {
    if (this_thread.busy == 0 && is_overridden(args, kwargs)) return call_overridden(function, args, kwargs);
    return PyObject_Call(function, args, kwargs);
  }
  if (is_being_traced()) return PyObject_Call(function, args, kwargs);
  const size_t number = PyLong_AsSize_t(PyTuple_GetItem(arguments, 0));
  if (number >= state.apis.size()) {
    PyErr_Clear();
    return PyObject_Call(function, args, kwargs);
  }
  return record_call(number, state.apis[number], function, args, kwargs);
}

PyObject* add_api(PyObject*, PyObject* arguments) {
  const char* name = nullptr;
  int distributed = 0;
  int dropout = 0;
  unsigned long long masked_inputs = 0;
  unsigned long long masked_outputs = 0;
  const char* masked_keyword = nullptr;
  int by_argument = 0;
  int forward_only = 0;
  if (PyArg_ParseTuple(arguments, "sppKKz|pp", &name, &distributed, &dropout, &masked_inputs, &masked_outputs,
                       &masked_keyword, &by_argument, &forward_only) == 0) {
    return nullptr;
  }
  Api api;
  const msprobe_status status = msprobe_intern(name, &api.name);
  if (status != MSPROBE_OK) return raise_status(status);
  api.distributed = distributed != 0;
  api.dropout = dropout != 0;
  api.masked_inputs = masked_inputs;
  api.masked_outputs = masked_outputs;
  if (masked_keyword != nullptr) api.masked_keyword = masked_keyword;
  api.by_argument = by_argument != 0;
  api.forward_only = forward_only != 0;
  state.apis.push_back(api);
  return PyLong_FromSize_t(state.apis.size() - 1);
}

PyObject* enter_module(PyObject*, PyObject* arguments) {
  unsigned int name = 0;
  PyObject* args = nullptr;
  PyObject* kwargs = nullptr;
  PyObject* buffers = nullptr;
  if (PyArg_ParseTuple(arguments, "IOOO", &name, &args, &kwargs, &buffers) == 0) return nullptr;
  if (state.session == nullptr || this_thread.busy != 0 || is_being_traced()) Py_RETURN_NONE;
  const Busy busy;
  msprobe_event event{};
  // Enters modules that are not recorded, too: their children and the windows of `scope` depend on it.
  if (msprobe_enter(state.session, MSPROBE_KIND_MODULE, name, &event) == MSPROBE_OK) {
    const Unseen unseen(is_overridden(args, kwargs));
    guarded("recording arguments", [&] {
      record_inputs(event, args, kwargs, nullptr);
      if (buffers == Py_None || (event.wants & MSPROBE_WANT_INPUT) == 0) return;
      if (Section section(event, MSPROBE_BUFFERS); section) section.add_members(buffers);
    });
  } else {
    event.wants = 0;
  }
  guarded("recording arguments", collect_released);
  return new_call(event);
}

PyObject* parameter_gradient(PyObject*, PyObject* arguments) {
  unsigned int module = 0;
  const char* parameter = nullptr;
  unsigned int expected = 0;
  PyObject* gradient = nullptr;
  if (PyArg_ParseTuple(arguments, "IsIO", &module, &parameter, &expected, &gradient) == 0) return nullptr;
  if (state.session == nullptr || this_thread.busy != 0) Py_RETURN_NONE;
  const Busy busy;
  msprobe_builder* builder = nullptr;
  const msprobe_status status =
      msprobe_parameter_gradient(state.session, module, parameter, expected, &builder);
  if (status != MSPROBE_OK || builder == nullptr) Py_RETURN_NONE;
  this_thread.wants_elements = state.adding_may_wait;
  this_thread.wants_files = state.wants_files;
  bool added = false;
  guarded("recording a gradient", [&] { added = add_value(builder, nullptr, gradient); });
  if (added) {
    msprobe_builder_commit(builder);
  } else {
    log_exception("recording a gradient");
    msprobe_builder_abort(builder);
  }
  measure_on_gpus();
  guarded("recording a gradient", collect_released);
  Py_RETURN_NONE;
}

PyObject* probe_gradient(PyObject*, PyObject* arguments) {
  const char* parameter = nullptr;
  PyObject* gradient = nullptr;
  if (PyArg_ParseTuple(arguments, "sO", &parameter, &gradient) == 0) return nullptr;
  if (state.session == nullptr) Py_RETURN_NONE;
  const Busy busy;
  HostTensor host;
  if (!read_host_tensor(gradient, &host) && !read_array(gradient, &host)) {
    PyErr_SetString(PyExc_TypeError, "a gradient must be a tensor in host memory, or a NumPy array");
    return nullptr;
  }
  PyThreadState* thread = PyEval_SaveThread();
  const msprobe_status status = msprobe_probe_gradient(state.session, parameter, &host.tensor);
  PyEval_RestoreThread(thread);
  return none_or_raise(status);
}

PyObject* call_quietly(PyObject*, PyObject* arguments) {
  const Py_ssize_t size = PyTuple_Size(arguments);
  if (size < 1) {
    PyErr_SetString(PyExc_TypeError, "call_quietly takes a function");
    return nullptr;
  }
  const Ref rest(PyTuple_GetSlice(arguments, 1, size));
  if (!rest) return nullptr;
  const Busy busy;
  return PyObject_CallObject(PyTuple_GetItem(arguments, 0), rest.get());
}

}  // namespace msprobe::python
