// SPDX-License-Identifier: Apache-2.0
// Hides our calls from tensors and modes that see the calls made with them (__torch_function__), and shows
// them the framework's own functions instead of our wrappers.
#pragma once

#include "python.hpp"

namespace msprobe::python {

/// Does a mode, or any of the arguments (also in a list), see calls? kwargs: a dict or nullptr.
bool is_overridden(PyObject* args, PyObject* kwargs);

/// Calls the function with the arguments while the unwrapped function is in its original place, because code
/// that sees the call compares the two.
PyObject* call_overridden(PyObject* function, PyObject* args, PyObject* kwargs);

/// While the object exists, no tensor or mode sees calls of this thread. Exceptions in flight stay as they
/// are.
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
