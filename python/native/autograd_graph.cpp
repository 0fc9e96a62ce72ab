// SPDX-License-Identifier: Apache-2.0
#include "autograd_graph.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace msprobe::python {
namespace {

struct GraphFunctions {
  Ref sequence_number;
  Ref accumulation_of;
  Ref next_functions;  // names
  Ref own_number;
  Ref grad_fn;
  Ref output_number;
};

// Never freed: hooks may live as long as the interpreter.
GraphFunctions* graph_functions = nullptr;

thread_local std::weak_ptr<Graph> current_graph;

bool nodes_have_numbers() {
  return graph_functions->sequence_number.get() != Py_None;
}

uint64_t number_of(const Ref& value) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(value.get());
  if (PyErr_Occurred() != nullptr) throw Raised();
  return number;
}

template <typename Visit>
void for_next(PyObject* node, Visit visit) {
  const Ref next = checked(PyObject_GetAttr(node, graph_functions->next_functions.get()));
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

}  // namespace

Ref checked(PyObject* owned) {
  if (owned == nullptr) throw Raised();
  return Ref(owned);
}

void bind_graph(PyObject* sequence_number, PyObject* accumulation_of) {
  const auto name = [](const char* text) { return Ref(PyUnicode_InternFromString(text)); };
  graph_functions = new GraphFunctions{Ref::borrowed(sequence_number),
                                       Ref::borrowed(accumulation_of),
                                       name("next_functions"),
                                       name("_sequence_nr"),
                                       name("grad_fn"),
                                       name("output_nr")};
}

void OlderNodes::begin() {
  if (nodes_have_numbers())
    first_ =
        number_of(checked(PyObject_CallFunctionObjArgs(graph_functions->sequence_number.get(), nullptr)));
}

bool OlderNodes::has(PyObject* node) const {
  if (!nodes_have_numbers()) return behind_inputs_.count(node) != 0;
  return number_of(checked(PyObject_CallMethodObjArgs(node, graph_functions->own_number.get(), nullptr))) <
         first_;
}

std::shared_ptr<Graph> Graph::of_this_thread() {
  std::shared_ptr<Graph> graph = current_graph.lock();
  if (!graph) current_graph = graph = std::make_shared<Graph>();
  return graph;
}

PyObject* Graph::hold(Ref node) {
  PyObject* const address = node.get();
  if (known_.insert(address).second) held_.push_back(std::move(node));
  return address;
}

Edge Graph::edge_of(PyObject* tensor) {
  Ref node = checked(PyObject_GetAttr(tensor, graph_functions->grad_fn.get()));
  if (node.get() == Py_None) return {};
  const Ref number = checked(PyObject_GetAttr(tensor, graph_functions->output_number.get()));
  return {hold(std::move(node)), PyLong_AsLong(number.get())};
}

Edge Graph::edge_of_any(PyObject* tensor) {
  const Edge edge = edge_of(tensor);
  if (edge.node != nullptr) return edge;
  return {
      hold(checked(PyObject_CallFunctionObjArgs(graph_functions->accumulation_of.get(), tensor, nullptr))),
      0};
}

void Graph::explore(std::vector<PyObject*> open, const Mark& begin, const OlderNodes& older) {
  const auto stopped = ends_.begin() + static_cast<std::ptrdiff_t>(std::min(begin.ends, ends_.size()));
  open.insert(open.end(), stopped, ends_.end());
  ends_.erase(stopped, ends_.end());
  while (!open.empty()) {
    PyObject* const node = open.back();
    open.pop_back();
    if (explored_.count(node) != 0) continue;
    if (older.has(node)) {
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

std::vector<Graph::Use> Graph::uses_of(const Edge& edge, const Mark& since) const {
  const auto found = uses_.find(edge);
  if (found == uses_.end()) return {};
  const auto first = std::partition_point(found->second.begin(), found->second.end(),
                                          [&](const Use& use) { return use.order < since.uses; });
  return {first, found->second.end()};
}

bool leads_to(PyObject* node, const std::unordered_set<PyObject*>& goals, const OlderNodes& older) {
  std::vector<Ref> open;
  std::unordered_set<PyObject*> seen;
  open.push_back(Ref::borrowed(node));
  while (!open.empty()) {
    const Ref one = std::move(open.back());
    open.pop_back();
    if (!seen.insert(one.get()).second || older.has(one.get())) continue;
    if (goals.count(one.get()) != 0) return true;
    for_next(one.get(), [&](Py_ssize_t, const Edge& edge) { open.push_back(Ref::borrowed(edge.node)); });
  }
  return false;
}

}  // namespace msprobe::python
