// SPDX-License-Identifier: Apache-2.0
// Tensors, and modes, that see the calls made with them (__torch_function__): ours are none of their
// business, and the functions they are told of are those of the framework.
#pragma once

#include "python.hpp"

namespace msprobe::python {

/// Does any of the arguments, also in a list of them, or a mode see calls? kwargs: a dict or nullptr.
bool is_overridden(PyObject* args, PyObject* kwargs);

/// The function called with the arguments while it stands, unwrapped, where it comes from: who sees the call
/// compares it with what stands there.
PyObject* call_overridden(PyObject* function, PyObject* args, PyObject* kwargs);

/// While it lives nobody sees calls of this thread. Exceptions in flight stay as they are.
class Unseen {
 public:
  explicit Unseen(bool wanted);
  ~Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  Ref guard_;
};

}  // namespace msprobe::python
