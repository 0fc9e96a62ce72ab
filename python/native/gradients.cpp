// SPDX-License-Identifier: Apache-2.0
//
// A tensor's gradient travels along its edge: (node that made it, number of its output). A module passes to
// an input the sum over those edges to it that begin at nodes made inside the module; a hook on each such
// node sees its share. An output receives the sum that its node gets, minus the shares that come from inside.
#include "gradients.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd_graph.hpp"
#include "state.hpp"

namespace msprobe::python {
namespace {

constexpr const char* kWhere = "recording the backward of a module";

struct BackwardFunctions {
  Ref combine;
  Ref queue_callback;
  Ref register_prehook;  // names
  Ref begin;
  Ref end;
};

// Never freed: hooks may live as long as the interpreter.
BackwardFunctions* functions = nullptr;

PyObject* gradients_type = nullptr;
PyObject* hook_type = nullptr;

// ------------------------------------------------------------------ one call

// A tensor at the boundary of the call, and the gradients that arrive along its edge in a backward.
struct Boundary {
  std::vector<size_t> inputs;  // positions
  bool given = false;          // an input, also among the keyword arguments, which have no gradients
  std::vector<size_t> outputs;
  bool used_inside = false;
  Ref total;                // for outputs: the sum that its node gets
  std::vector<Ref> shares;  // the gradients from inside the module
};

constexpr size_t kUnseen = std::numeric_limits<size_t>::max();

struct CallState {
  Ref receiver;
  std::shared_ptr<Graph> graph;  // while the call is in progress
  Graph::Mark begin;             // of the call
  OlderNodes older;
  std::unordered_map<Edge, size_t, EdgeHash> by_edge;
  std::vector<Boundary> boundaries;
  std::vector<size_t> inputs;  // index: position, value: boundary
  std::vector<size_t> outputs;

  size_t needed = 0;      // number of hooks that end a backward when all have been called
  size_t missing = 0;     // number of those not yet called in this backward
  uint64_t backward = 1;  // number of the current backward
  bool begun = false;     // a gradient of an output has arrived
  bool recorded = false;  // an earlier backward was recorded
};

struct Gradients {
  PyObject_HEAD CallState* state;
};

struct Place {
  size_t boundary;
  Py_ssize_t at;
};

struct Places {
  std::vector<Place> entering;  // positions in the gradients that a node gets
  std::vector<Place> leaving;   // positions in the gradients that it gives
};

// The hook of one node. It is called with (grad_outputs) before the node, or with (grad_inputs, grad_outputs)
// after it.
struct Hook {
  PyObject_HEAD Gradients* owner;
  Places* places;
  bool needed;
  uint64_t backward;  // number of the backward in which it was called last
};

CallState& state_of(PyObject* self) {
  return *reinterpret_cast<Gradients*>(self)->state;
}

size_t boundary_at(CallState& call, const Edge& edge) {
  const auto [found, is_new] = call.by_edge.try_emplace(edge, call.boundaries.size());
  if (is_new) call.boundaries.emplace_back();
  return found->second;
}

void enter(CallState& call, PyObject* tensors, PyObject* others) {
  call.graph = Graph::of_this_thread();
  const auto given = [&](PyObject* tensor) {
    const Edge edge = call.graph->edge_of_any(tensor);
    call.older.add(edge.node);
    const size_t boundary = boundary_at(call, edge);
    call.boundaries[boundary].given = true;
    return boundary;
  };
  for (Py_ssize_t at = 0; at < PyList_Size(tensors); ++at) {
    const size_t boundary = given(PyList_GetItem(tensors, at));
    call.boundaries[boundary].inputs.push_back(static_cast<size_t>(at));
    call.inputs.push_back(boundary);
  }
  for (Py_ssize_t at = 0; at < PyList_Size(others); ++at) given(PyList_GetItem(others, at));
  call.begin = call.graph->mark();
  call.older.begin();
}

void hook_node(Gradients* owner, PyObject* node, PyObject* method, Places places, bool needed) {
  Hook* hook = PyObject_New(Hook, reinterpret_cast<PyTypeObject*>(hook_type));
  if (hook == nullptr) throw Raised();
  Py_INCREF(reinterpret_cast<PyObject*>(owner));
  hook->owner = owner;
  hook->places = new Places(std::move(places));
  hook->needed = needed;
  hook->backward = 0;
  const Ref hook_ref(reinterpret_cast<PyObject*>(hook));
  checked(PyObject_CallMethodObjArgs(node, method, hook_ref.get(), nullptr));
  if (needed) ++owner->state->needed;
}

void leave(Gradients* self, PyObject* tensors) {
  CallState& call = *self->state;
  Graph& graph = *call.graph;
  std::vector<PyObject*> starts;
  const Py_ssize_t size = PyList_Size(tensors);
  for (Py_ssize_t at = 0; at < size; ++at) {
    const Edge edge = graph.edge_of(PyList_GetItem(tensors, at));
    if (edge.node == nullptr) {  // a leaf: its gradient also comes from all other uses
      call.outputs.push_back(kUnseen);
      continue;
    }
    const size_t boundary = boundary_at(call, edge);
    call.boundaries[boundary].outputs.push_back(static_cast<size_t>(at));
    call.outputs.push_back(boundary);
    starts.push_back(edge.node);
  }
  if (starts.empty()) return;
  graph.explore(starts, call.begin, call.older);

  std::unordered_map<PyObject*, Places> nodes;
  std::unordered_set<PyObject*> output_nodes;
  std::unordered_set<PyObject*> share_nodes;
  for (const auto& [edge, index] : call.by_edge) {
    Boundary& boundary = call.boundaries[index];
    if (!boundary.outputs.empty()) {
      nodes[edge.node].entering.push_back({index, edge.number});
      output_nodes.insert(edge.node);
    }
    if (boundary.inputs.empty() && boundary.outputs.empty()) continue;
    for (const Graph::Use& use : graph.uses_of(edge, call.begin)) {
      boundary.used_inside = true;
      share_nodes.insert(use.node);
      nodes[use.node].leaving.push_back({index, use.at});
    }
  }
  // If all gradients pass one node, one hook is enough.
  if (nodes.size() == 1 && !share_nodes.empty()) {
    hook_node(self, nodes.begin()->first, names.register_hook, std::move(nodes.begin()->second), true);
    return;
  }
  for (PyObject* const node : output_nodes) {
    // The gradient of a node that leads to shares arrives before the shares, or not at all.
    const bool needed =
        share_nodes.empty() || (output_nodes.size() > 1 && !leads_to(node, share_nodes, call.older));
    hook_node(self, node, functions->register_prehook.get(), {nodes[node].entering, {}}, needed);
  }
  for (PyObject* const node : share_nodes)
    hook_node(self, node, names.register_hook, {{}, nodes[node].leaving}, true);
}

void forget_graph(CallState& call) {
  call.graph.reset();
  call.by_edge = {};
}

// ------------------------------------------------------------------ a backward

void begin_anew(CallState& call) {
  ++call.backward;
  call.missing = call.needed;
  call.begun = false;
  for (Boundary& boundary : call.boundaries) {
    boundary.total = Ref();
    boundary.shares.clear();
  }
}

void add_positions(std::string& note, const char* what, const std::vector<size_t>& positions) {
  if (positions.size() < 2) return;
  note += (note.empty() ? "" : "; ") + std::string(what);
  for (size_t at = 0; at < positions.size(); ++at)
    note += (at == 0 ? " " : at + 1 == positions.size() ? " and " : ", ") + std::to_string(positions[at]);
  note += " together, one tensor";
}

// The note of a gradient that also has other parts than the one asked for.
std::string note_of(const Boundary& boundary) {
  std::string note;
  add_positions(note, "inputs", boundary.inputs);
  add_positions(note, "outputs", boundary.outputs);
  if (!boundary.outputs.empty() && boundary.given) {
    note += note.empty() ? "" : "; ";
    note += "all uses of a tensor that the module returns as it got it";
  }
  return note;
}

Ref none() {
  return Ref::borrowed(Py_None);
}

Ref list_of(const std::vector<Ref>& values) {
  Ref list = checked(PyList_New(0));
  for (const Ref& value : values) {
    if (PyList_Append(list.get(), value.get()) != 0) throw Raised();
  }
  return list;
}

Ref combined(PyObject* total, const std::vector<Ref>& added, const std::vector<Ref>& subtracted,
             const std::string& note) {
  const Ref shares = list_of(added);
  const Ref less = list_of(subtracted);
  const Ref text = checked(PyUnicode_FromStringAndSize(note.data(), static_cast<Py_ssize_t>(note.size())));
  return checked(PyObject_CallFunctionObjArgs(functions->combine.get(), total, shares.get(), less.get(),
                                              text.get(), nullptr));
}

Ref input_gradient(const Boundary& boundary, size_t position) {
  if (boundary.inputs.front() != position) return none();  // the note is at the first of them
  const std::string note = note_of(boundary);
  if (!boundary.outputs.empty())
    return boundary.total ? combined(boundary.total.get(), {}, {}, note) : none();
  if (boundary.shares.empty()) return none();
  if (boundary.shares.size() == 1 && note.empty()) return Ref::borrowed(boundary.shares.front().get());
  return combined(Py_None, boundary.shares, {}, note);
}

Ref output_gradient(const Boundary& boundary, size_t position) {
  if (!boundary.total || boundary.outputs.front() != position) return none();
  std::string note = note_of(boundary);
  if (note.empty() && !boundary.used_inside) return Ref::borrowed(boundary.total.get());
  if (boundary.used_inside)
    note += std::string(note.empty() ? "" : "; ") + "all uses less those inside the module";
  return combined(boundary.total.get(), {}, boundary.shares, note);
}

template <typename Make>
Ref tuple_of(const std::vector<size_t>& positions, Make make) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(positions.size())));
  for (size_t at = 0; at < positions.size(); ++at) {
    Ref value = make(at);
    if (PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(at), value.release()) != 0) throw Raised();
  }
  return tuple;
}

bool gives_anything(const CallState& call) {
  if (call.inputs.empty()) return true;
  for (const size_t input : call.inputs) {
    const Boundary& boundary = call.boundaries[input];
    if (!boundary.shares.empty() || (!boundary.outputs.empty() && boundary.total)) return true;
  }
  return false;
}

void finish(Gradients* self) {
  CallState& call = *self->state;
  // This pass over the same nodes computes only the gradients of parameters, as schedules of pipelines do.
  const bool again = call.recorded && !gives_anything(call);
  const Ref inputs = again ? none() : tuple_of(call.inputs, [&](size_t at) {
    return input_gradient(call.boundaries[call.inputs[at]], at);
  });
  const Ref outputs = again ? none() : tuple_of(call.outputs, [&](size_t at) {
    return call.outputs[at] == kUnseen ? none() : output_gradient(call.boundaries[call.outputs[at]], at);
  });
  begin_anew(call);
  call.recorded = true;
  checked(PyObject_CallMethodObjArgs(call.receiver.get(), functions->end.get(), inputs.get(), outputs.get(),
                                     nullptr));
}

void finish_later(Gradients* self) {
  const Ref end = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(self), "end"));
  checked(PyObject_CallFunctionObjArgs(functions->queue_callback.get(), end.get(), nullptr));
}

// The gradient at a position; null or None if the node has none there.
PyObject* element(PyObject* gradients, Py_ssize_t at) {
  return at < PyTuple_Size(gradients) ? PyTuple_GetItem(gradients, at) : nullptr;
}

void called(Hook* hook, PyObject* grad_inputs, PyObject* grad_outputs) {
  CallState& call = *hook->owner->state;
  if (hook->backward == call.backward) begin_anew(call);  // the previous backward did not end
  const Places& places = *hook->places;
  const bool enters = !places.entering.empty();
  // If no output's gradient has arrived, this one came another way, as in a second derivative.
  if (!enters && !call.begun) return;
  hook->backward = call.backward;
  bool begins = false;
  for (const Place& place : places.entering) {
    PyObject* const gradient = element(grad_outputs, place.at);
    if (gradient == nullptr || gradient == Py_None) continue;
    if (!call.begun) {
      begins = call.begun = true;
      checked(PyObject_CallMethodObjArgs(call.receiver.get(), functions->begin.get(), nullptr));
    }
    call.boundaries[place.boundary].total = Ref::borrowed(gradient);
  }
  for (const Place& place : places.leaving) {
    PyObject* const gradient = element(grad_inputs, place.at);
    if (gradient != nullptr && gradient != Py_None)
      call.boundaries[place.boundary].shares.push_back(Ref::borrowed(gradient));
  }
  if (hook->needed && call.missing > 0) --call.missing;
  if (call.missing == 0 && call.begun) {
    finish(hook->owner);
  } else if (begins) {
    finish_later(hook->owner);
  }
}

// ------------------------------------------------------------------ the types

template <typename Part>
void logged(Part part) {
  const Busy busy;
  guarded(kWhere, [&] {
    try {
      part();
    } catch (const Raised&) {  // the Python exception is logged
    }
  });
}

PyObject* run_hook(PyObject* self, PyObject* arguments, PyObject*) {
  PyObject* first = nullptr;
  PyObject* second = nullptr;
  if (this_thread.busy != 0) Py_RETURN_NONE;
  logged([&] {
    if (PyArg_ParseTuple(arguments, "O|O", &first, &second) == 0) return;
    called(reinterpret_cast<Hook*>(self), first, second != nullptr ? second : first);
  });
  Py_RETURN_NONE;
}

void free_hook(PyObject* self) {
  Hook* hook = reinterpret_cast<Hook*>(self);
  PyTypeObject* type = Py_TYPE(self);
  delete hook->places;
  PyObject* const owner = reinterpret_cast<PyObject*>(hook->owner);
  PyObject_Free(self);
  Py_DECREF(owner);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* new_gradients(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* receiver = nullptr;
  if (PyArg_ParseTuple(arguments, "O", &receiver) == 0) return nullptr;
  if (functions == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "bind_autograd() was not called");
    return nullptr;
  }
  Gradients* self = PyObject_New(Gradients, type);
  if (self == nullptr) return nullptr;
  self->state = new CallState();
  self->state->receiver = Ref::borrowed(receiver);
  return reinterpret_cast<PyObject*>(self);
}

void free_gradients(PyObject* self) {
  delete reinterpret_cast<Gradients*>(self)->state;
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* enter_call(PyObject* self, PyObject* arguments) {
  PyObject* tensors = nullptr;
  PyObject* others = nullptr;
  if (PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &tensors, &PyList_Type, &others) == 0) return nullptr;
  try {
    enter(state_of(self), tensors, others);
  } catch (const Raised&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* leave_call(PyObject* self, PyObject* tensors) {
  CallState& call = state_of(self);
  try {
    if (call.graph) leave(reinterpret_cast<Gradients*>(self), tensors);
    call.missing = call.needed;
  } catch (const Raised&) {
    forget_graph(call);
    return nullptr;
  }
  forget_graph(call);
  Py_RETURN_NONE;
}

PyObject* end_of_backward(PyObject* self, PyObject*) {
  if (state_of(self).begun) logged([&] { finish(reinterpret_cast<Gradients*>(self)); });
  Py_RETURN_NONE;
}

PyMethodDef gradients_methods[] = {
    {"enter", enter_call, METH_VARARGS,
     "enter(input tensors, other tensors that it gets), lists: the call begins"},
    {"leave", leave_call, METH_O, "leave(list of output tensors): the call has ended"},
    {"end", end_of_backward, METH_NOARGS, "the backward has ended: what has not come will not"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* bind_autograd(PyObject*, PyObject* arguments) {
  PyObject* sequence_number = nullptr;
  PyObject* accumulation_of = nullptr;
  PyObject* combine = nullptr;
  PyObject* queue_callback = nullptr;
  if (PyArg_ParseTuple(arguments, "OOOO", &sequence_number, &accumulation_of, &combine, &queue_callback) == 0)
    return nullptr;
  const auto name = [](const char* text) { return Ref(PyUnicode_InternFromString(text)); };
  bind_graph(sequence_number, accumulation_of);
  functions = new BackwardFunctions{Ref::borrowed(combine), Ref::borrowed(queue_callback),
                                    name("register_prehook"), name("begin_backward"), name("end_backward")};
  if (PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

PyObject* make_gradients_type() {
  PyType_Slot hook_slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(free_hook)},
      {Py_tp_call, reinterpret_cast<void*>(run_hook)},
      {0, nullptr},
  };
  PyType_Spec hook_spec = {"msprobe._native.GradientHook", sizeof(Hook), 0, Py_TPFLAGS_DEFAULT, hook_slots};
  hook_type = PyType_FromSpec(&hook_spec);
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(new_gradients)},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_gradients)},
      {Py_tp_methods, static_cast<void*>(gradients_methods)},
      {0, nullptr},
  };
  PyType_Spec spec = {"msprobe._native.Gradients", sizeof(Gradients), 0, Py_TPFLAGS_DEFAULT, slots};
  gradients_type = hook_type != nullptr ? PyType_FromSpec(&spec) : nullptr;
  return gradients_type;
}

}  // namespace msprobe::python
