// SPDX-License-Identifier: Apache-2.0
// The autograd graph of PyTorch, as Python shows it: nodes, edges, and which of them a call has made.
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

/// What a C++ exception carries out of here: a Python exception is pending.
struct Raised {};

/// Throws Raised instead of giving a null reference.
Ref checked(PyObject* owned);

/// sequence_number() -> the number that the next node gets, None if nodes have none; accumulation_of(leaf) ->
/// its node.
void bind_graph(PyObject* sequence_number, PyObject* accumulation_of);

/// Along which the gradient of a tensor travels: the node that made it, and the number of its output.
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

/// The nodes made before a call began, at which what it has made ends.
class OlderNodes {
 public:
  /// The call begins.
  void begin();
  /// A node behind one of its inputs. Where nodes have no numbers these stand for all older ones.
  void add(PyObject* node) { behind_inputs_.insert(node); }
  bool has(PyObject* node) const;

 private:
  uint64_t first_ = 0;  // number of the call's own nodes
  std::unordered_set<PyObject*> behind_inputs_;
};

/// The nodes made during the outermost call that is under way in a thread, each looked at once, whichever of
/// the calls inside comes to it first.
class Graph {
 public:
  /// Of the calls under way in this thread. It lives as long as one of them holds it.
  static std::shared_ptr<Graph> of_this_thread();

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

  /// The edge of a tensor that is no leaf; without a node if it is one. The node lives as long as the graph.
  Edge edge_of(PyObject* tensor);
  /// Also of a leaf: that of the node which accumulates its gradient.
  Edge edge_of_any(PyObject* tensor);
  /// Looks at all nodes behind `open` that are not older than a call, and behind those at which calls inside
  /// of it have stopped: it began at `begin`.
  void explore(std::vector<PyObject*> open, const Mark& begin, const OlderNodes& older);
  /// Of an edge, those found since then.
  std::vector<Use> uses_of(const Edge& edge, const Mark& since) const;

 private:
  PyObject* hold(Ref node);

  std::unordered_map<Edge, std::vector<Use>, EdgeHash> uses_;
  std::unordered_set<PyObject*> explored_;
  std::unordered_set<PyObject*> known_;
  std::vector<Ref> held_;        // so that an address stands for one node
  std::vector<PyObject*> ends_;  // at which a call has stopped, for they are older
  size_t count_ = 0;
};

/// Whether one of the nodes behind this one, or it itself, is among the `goals`.
bool leads_to(PyObject* node, const std::unordered_set<PyObject*>& goals, const OlderNodes& older);

}  // namespace msprobe::python
