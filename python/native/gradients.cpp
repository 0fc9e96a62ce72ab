// SPDX-License-Identifier: Apache-2.0
//
// A tensor's gradient travels along its edge: (node that made it, number of its output). What a module passes
// to an input is the sum over the edges to it that begin at nodes made inside the module; a hook on each such
// node sees its share. What arrives at an output is the sum that its node gets, less the shares that come
// from inside.
#include "gradients.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "state.hpp"

namespace msprobe::python {
namespace {

constexpr const char* kWhere = "recording the backward of a module";

struct Autograd {
  Ref sequence_number;
  Ref accumulation_of;
  Ref combine;
  Ref queue_callback;
  Ref next_functions;  // names
  Ref own_number;
  Ref output_number;
  Ref register_prehook;
  Ref begin;
  Ref end;
};

// Never freed: hooks may live as long as the interpreter.
Autograd* autograd = nullptr;

PyObject* gradients_type = nullptr;
PyObject* hook_type = nullptr;

/// What a C++ exception carries out of here: a Python exception is pending.
struct Raised {};

Ref checked(PyObject* owned) {
  if (owned == nullptr) throw Raised();
  return Ref(owned);
}

struct Edge {
  PyObject* node = nullptr;
  long number = 0;
  bool operator==(const Edge&) const = default;
};

struct EdgeHash {
  size_t operator()(const Edge& edge) const {
    return std::hash<void*>()(edge.node) * 31 + static_cast<size_t>(edge.number);
  }
};

// Of a node's next_functions.
template <typename Visit>
void for_next(PyObject* node, Visit visit) {
  const Ref next = checked(PyObject_GetAttr(node, autograd->next_functions.get()));
  const Py_ssize_t size = PyTuple_Size(next.get());
  if (size < 0) throw Raised();
  for (Py_ssize_t at = 0; at < size; ++at) {
    PyObject* const pair = PyTuple_GetItem(next.get(), at);
    PyObject* const target = pair != nullptr ? PyTuple_GetItem(pair, 0) : nullptr;
    PyObject* const number = pair != nullptr ? PyTuple_GetItem(pair, 1) : nullptr;
    if (number == nullptr) throw Raised();
    if (target != Py_None) visit(at, Edge{target, PyLong_AsLong(number)});
  }
}

// The nodes made during the outermost call that is under way in a thread, each looked at once, whichever of
// the calls inside comes to it first.
class Graph {
 public:
  struct Use {
    size_t order;
    PyObject* node;
    Py_ssize_t at;  // in its next_functions
  };

  /// What was found so far: a place in time, for a call to remember when it begins.
  struct Mark {
    size_t uses = 0;
    size_t ends = 0;
  };
  Mark mark() const { return {count_, ends_.size()}; }
  void hold(Ref node) {
    if (known_.insert(node.get()).second) held_.push_back(std::move(node));
  }
  /// Looks at all nodes behind `open` from number `since` on, and behind those at which calls inside of this
  /// one, which began at `begin`, have stopped. `stops`: the nodes to stop at, where nodes have no numbers.
  void explore(std::vector<PyObject*> open, const Mark& begin, uint64_t since,
               const std::unordered_set<PyObject*>& stops) {
    const auto stopped = ends_.begin() + static_cast<std::ptrdiff_t>(std::min(begin.ends, ends_.size()));
    open.insert(open.end(), stopped, ends_.end());
    ends_.erase(stopped, ends_.end());
    while (!open.empty()) {
      PyObject* const node = open.back();
      open.pop_back();
      if (explored_.count(node) != 0) continue;
      if (is_older(node, since, stops)) {
        ends_.push_back(node);
        continue;
      }
      explored_.insert(node);
      for_next(node, [&](Py_ssize_t at, const Edge& edge) {
        hold(Ref::borrowed(edge.node));
        uses_[edge].push_back({count_++, node, at});
        open.push_back(edge.node);
      });
    }
  }
  /// Of an edge, those found since then.
  std::vector<Use> uses_of(const Edge& edge, const Mark& since) const {
    const auto found = uses_.find(edge);
    if (found == uses_.end()) return {};
    auto first = found->second.end();
    while (first != found->second.begin() && std::prev(first)->order >= since.uses) --first;
    return {first, found->second.end()};
  }
  static bool is_older(PyObject* node, uint64_t since, const std::unordered_set<PyObject*>& stops) {
    if (autograd->sequence_number.get() == Py_None) return stops.count(node) != 0;
    const Ref number = checked(PyObject_CallMethodObjArgs(node, autograd->own_number.get(), nullptr));
    const unsigned long long value = PyLong_AsUnsignedLongLong(number.get());
    if (value == std::numeric_limits<unsigned long long>::max() && PyErr_Occurred() != nullptr)
      throw Raised();
    return value < since;
  }

 private:
  std::unordered_map<Edge, std::vector<Use>, EdgeHash> uses_;
  std::unordered_set<PyObject*> explored_;
  std::unordered_set<PyObject*> known_;
  std::vector<Ref> held_;        // so that an address stands for one node
  std::vector<PyObject*> ends_;  // at which a call has stopped, for they are older
  size_t count_ = 0;
};

// As long as a call is under way in this thread.
thread_local std::weak_ptr<Graph> current_graph;

// ------------------------------------------------------------------ one call

// A tensor at the boundary of the call, and what comes along its edge in a backward.
struct Boundary {
  std::vector<size_t> inputs;  // positions
  bool given = false;          // an input, or among the keyword arguments, which have no gradients
  std::vector<size_t> outputs;
  bool used_inside = false;
  Ref total;                // what its node gets; of outputs
  std::vector<Ref> shares;  // from inside
};

constexpr size_t kUnseen = std::numeric_limits<size_t>::max();

struct CallState {
  Ref receiver;
  std::shared_ptr<Graph> graph;  // while the call is under way
  Graph::Mark begin;             // of the call
  uint64_t since = 0;
  std::unordered_map<Edge, size_t, EdgeHash> by_edge;
  std::vector<Boundary> boundaries;
  std::vector<size_t> inputs;  // position -> boundary
  std::vector<size_t> outputs;

  size_t needed = 0;      // hooks that end a backward when all of them have been called
  size_t missing = 0;     // of those, in this backward
  uint64_t backward = 1;  // counts
  bool begun = false;     // a gradient of an output has come
  bool recorded = false;  // an earlier backward was
};

struct Gradients {
  PyObject_HEAD CallState* state;
};

struct Place {
  size_t boundary;
  Py_ssize_t at;
};

struct Places {
  std::vector<Place> entering;  // in the gradients that a node gets
  std::vector<Place> leaving;   // in those that it gives
};

// The hook of one node. As a callable: (grad_outputs) before the node, or (grad_inputs, grad_outputs) after
// it.
struct Hook {
  PyObject_HEAD Gradients* owner;
  Places* places;
  bool needed;
  uint64_t backward;  // in which it was called
};

CallState& state_of(PyObject* self) {
  return *reinterpret_cast<Gradients*>(self)->state;
}

size_t boundary_at(CallState& call, const Edge& edge) {
  const auto [found, is_new] = call.by_edge.try_emplace(edge, call.boundaries.size());
  if (is_new) call.boundaries.emplace_back();
  return found->second;
}

// The edge of a tensor; its node is held by the graph.
Edge edge_of(Graph& graph, PyObject* tensor, bool leaves) {
  Ref node = checked(PyObject_GetAttr(tensor, names.grad_fn));
  if (node.get() == Py_None) {
    if (!leaves) return {};
    node = checked(PyObject_CallFunctionObjArgs(autograd->accumulation_of.get(), tensor, nullptr));
    const Edge edge{node.get(), 0};
    graph.hold(std::move(node));
    return edge;
  }
  const Ref number = checked(PyObject_GetAttr(tensor, autograd->output_number.get()));
  const Edge edge{node.get(), PyLong_AsLong(number.get())};
  graph.hold(std::move(node));
  return edge;
}

void enter(CallState& call, PyObject* tensors, PyObject* others) {
  call.graph = current_graph.lock();
  if (!call.graph) current_graph = call.graph = std::make_shared<Graph>();
  const Py_ssize_t size = PyList_Size(tensors);
  for (Py_ssize_t at = 0; at < size; ++at) {
    const size_t boundary = boundary_at(call, edge_of(*call.graph, PyList_GetItem(tensors, at), true));
    call.boundaries[boundary].inputs.push_back(static_cast<size_t>(at));
    call.boundaries[boundary].given = true;
    call.inputs.push_back(boundary);
  }
  for (Py_ssize_t at = 0; at < PyList_Size(others); ++at) {
    const size_t boundary = boundary_at(call, edge_of(*call.graph, PyList_GetItem(others, at), true));
    call.boundaries[boundary].given = true;
  }
  call.begin = call.graph->mark();
  if (autograd->sequence_number.get() == Py_None) return;
  const Ref number = checked(PyObject_CallFunctionObjArgs(autograd->sequence_number.get(), nullptr));
  call.since = PyLong_AsUnsignedLongLong(number.get());
}

// Whether the gradient of one of the `goals` needs this node to have been called.
bool leads_to(PyObject* node, const std::unordered_map<PyObject*, Places>& goals, uint64_t since,
              const std::unordered_set<PyObject*>& stops) {
  std::vector<Ref> open;
  std::unordered_set<PyObject*> seen;
  open.push_back(Ref::borrowed(node));
  while (!open.empty()) {
    const Ref one = std::move(open.back());
    open.pop_back();
    if (!seen.insert(one.get()).second || Graph::is_older(one.get(), since, stops)) continue;
    const auto goal = goals.find(one.get());
    if (goal != goals.end() && !goal->second.leaving.empty()) return true;
    for_next(one.get(), [&](Py_ssize_t, const Edge& edge) { open.push_back(Ref::borrowed(edge.node)); });
  }
  return false;
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
  std::unordered_set<PyObject*> stops;
  for (const auto& [edge, boundary] : call.by_edge) stops.insert(edge.node);
  std::vector<PyObject*> starts;
  const Py_ssize_t size = PyList_Size(tensors);
  for (Py_ssize_t at = 0; at < size; ++at) {
    const Edge edge = edge_of(graph, PyList_GetItem(tensors, at), false);
    if (edge.node == nullptr) {  // a leaf: its gradient is that of everything else, too
      call.outputs.push_back(kUnseen);
      continue;
    }
    const size_t boundary = boundary_at(call, edge);
    call.boundaries[boundary].outputs.push_back(static_cast<size_t>(at));
    call.outputs.push_back(boundary);
    starts.push_back(edge.node);
  }
  if (starts.empty()) return;
  graph.explore(starts, call.begin, call.since, stops);

  std::unordered_map<PyObject*, Places> nodes;
  std::unordered_set<PyObject*> output_nodes;
  bool has_shares = false;
  for (const auto& [edge, index] : call.by_edge) {
    Boundary& boundary = call.boundaries[index];
    if (!boundary.outputs.empty()) {
      nodes[edge.node].entering.push_back({index, edge.number});
      output_nodes.insert(edge.node);
    }
    if (boundary.inputs.empty() && boundary.outputs.empty()) continue;
    for (const Graph::Use& use : graph.uses_of(edge, call.begin)) {
      boundary.used_inside = has_shares = true;
      nodes[use.node].leaving.push_back({index, use.at});
    }
  }
  // A single node that all gradients pass needs a single hook.
  if (nodes.size() == 1 && has_shares) {
    hook_node(self, nodes.begin()->first, names.register_hook, std::move(nodes.begin()->second), true);
    return;
  }
  for (auto& [node, places] : nodes) {
    if (output_nodes.count(node) != 0) {
      // A gradient behind which shares come has arrived before them, or does not.
      const bool needed =
          !has_shares || (output_nodes.size() > 1 && !leads_to(node, nodes, call.since, stops));
      hook_node(self, node, autograd->register_prehook.get(), {places.entering, {}}, needed);
    }
  }
  for (auto& [node, places] : nodes) {
    if (!places.leaving.empty()) hook_node(self, node, names.register_hook, {{}, places.leaving}, true);
  }
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

// What is told of a gradient that is not the one asked for alone.
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
  return checked(PyObject_CallFunctionObjArgs(autograd->combine.get(), total, shares.get(), less.get(),
                                              text.get(), nullptr));
}

Ref input_gradient(const Boundary& boundary, size_t position) {
  if (boundary.inputs.front() != position) return none();  // told at the first of them
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
  // A pass over the same nodes for the gradients of parameters alone, as schedules of pipelines make it.
  const bool again = call.recorded && !gives_anything(call);
  const Ref inputs = again ? none() : tuple_of(call.inputs, [&](size_t at) {
    return input_gradient(call.boundaries[call.inputs[at]], at);
  });
  const Ref outputs = again ? none() : tuple_of(call.outputs, [&](size_t at) {
    return call.outputs[at] == kUnseen ? none() : output_gradient(call.boundaries[call.outputs[at]], at);
  });
  begin_anew(call);
  call.recorded = true;
  checked(PyObject_CallMethodObjArgs(call.receiver.get(), autograd->end.get(), inputs.get(), outputs.get(),
                                     nullptr));
}

void finish_later(Gradients* self) {
  const Ref end = checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(self), "end"));
  checked(PyObject_CallFunctionObjArgs(autograd->queue_callback.get(), end.get(), nullptr));
}

PyObject* element(PyObject* gradients, Py_ssize_t at) {
  if (!PyTuple_Check(gradients)) return at == 0 ? gradients : Py_None;
  return at < PyTuple_Size(gradients) ? PyTuple_GetItem(gradients, at) : Py_None;
}

void called(Hook* hook, PyObject* grad_inputs, PyObject* grad_outputs) {
  CallState& call = *hook->owner->state;
  if (hook->backward == call.backward) begin_anew(call);  // the one before came to no end
  const Places& places = *hook->places;
  const bool enters = !places.entering.empty();
  // Without a gradient of an output this one came another way, as in a second derivative.
  if (!enters && !call.begun) return;
  hook->backward = call.backward;
  bool begins = false;
  for (const Place& place : places.entering) {
    PyObject* const gradient = element(grad_outputs, place.at);
    if (gradient == nullptr || gradient == Py_None) continue;
    if (!call.begun) {
      begins = call.begun = true;
      checked(PyObject_CallMethodObjArgs(call.receiver.get(), autograd->begin.get(), nullptr));
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
    called(reinterpret_cast<Hook*>(self), second != nullptr ? first : Py_None,
           second != nullptr ? second : first);
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
  if (autograd == nullptr) {
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
  autograd = new Autograd{Ref::borrowed(sequence_number),
                          Ref::borrowed(accumulation_of),
                          Ref::borrowed(combine),
                          Ref::borrowed(queue_callback),
                          name("next_functions"),
                          name("_sequence_nr"),
                          name("output_nr"),
                          name("register_prehook"),
                          name("begin_backward"),
                          name("end_backward")};
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
