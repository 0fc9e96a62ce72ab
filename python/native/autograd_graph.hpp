// SPDX-License-Identifier: Apache-2.0
// The autograd graph of PyTorch, as Python shows it: its nodes and edges, and the nodes that a call has made.
#pragma once

#include "python.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace msprobe::python {

/// Thrown when a Python exception is pending.
struct Raised {};

/// Returns the reference; throws Raised if it is null.
Ref checked(PyObject* owned);

/// sequence_number() -> the number that the next node gets, None if nodes have no numbers;
/// accumulation_of(leaf) -> the node that accumulates the leaf's gradient.
void bind_graph(PyObject* sequence_number, PyObject* accumulation_of);

/// The edge along which the gradient of a tensor travels: the node that made the tensor, and the number of
/// its output.
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

/// The nodes made before a call began. The search for the call's own nodes ends at them.
class OlderNodes {
 public:
  /// Records that the call begins.
  void begin();
  /// Adds the node that made one of the inputs. If nodes have no numbers, these nodes represent all older
  /// ones.
  void add(PyObject* node) { behind_inputs_.insert(node); }
  bool has(PyObject* node) const;

 private:
  uint64_t first_ = 0;  // number of the call's own nodes
  std::unordered_set<PyObject*> behind_inputs_;
};

/// The nodes made during the outermost call in progress of a thread. Each node is visited once, by whichever
/// inner call reaches it first.
class Graph {
 public:
  /// The graph of the calls in progress in this thread. It lives as long as one of the calls holds it.
  static std::shared_ptr<Graph> of_this_thread();

  struct Use {
    size_t order;
    PyObject* node;
    Py_ssize_t at;  // in its next_functions
  };
  /// The extent of the findings so far. A call remembers it when it begins.
  struct Mark {
    size_t uses = 0;
    size_t ends = 0;
  };
  Mark mark() const { return {count_, ends_.size()}; }

  /// The edge of a tensor that is not a leaf; for a leaf, an edge without a node. The node lives as long as
  /// the graph.
  Edge edge_of(PyObject* tensor);
  /// Like edge_of(), but for a leaf the edge of the node that accumulates its gradient.
  Edge edge_of_any(PyObject* tensor);
  /// Visits all nodes that lead to `open` and are not older than the call, which began at `begin`, and those
  /// at which inner calls stopped.
  void explore(std::vector<PyObject*> open, const Mark& begin, const OlderNodes& older);
  /// The uses of an edge found since the mark.
  std::vector<Use> uses_of(const Edge& edge, const Mark& since) const;

 private:
  PyObject* hold(Ref node);

  std::unordered_map<Edge, std::vector<Use>, EdgeHash> uses_;
  std::unordered_set<PyObject*> explored_;
  std::unordered_set<PyObject*> known_;
  std::vector<Ref> held_;        // keeps each node alive, so that its address stays unique
  std::vector<PyObject*> ends_;  // nodes at which a call stopped because they are older
  size_t count_ = 0;
};

/// Is this node, or one of the nodes that it leads to in a backward, among the `goals`?
bool leads_to(PyObject* node, const std::unordered_set<PyObject*>& goals, const OlderNodes& older);

}  // namespace msprobe::python
