// SPDX-License-Identifier: Apache-2.0
// What the extension knows: the one session of the process, and the objects of the framework and of our
// Python part. All of it is guarded by the interpreter lock, except what is said to be per thread.
#pragma once

#include "python.hpp"

#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <vector>

#include "msprobe/collector.h"

namespace msprobe::python {

/// A wrapped function.
struct Api {
  uint32_t name = 0;           // of the collector
  bool distributed = false;    // its output are its arguments after the call
  bool dropout = false;        // without effect, hence without a backward, if its p is 0
  uint64_t masked_inputs = 0;  // positions written as null: buffers that only receive
  uint64_t masked_outputs = 0;
  std::string masked_keyword;  // the same, by keyword
  bool by_argument = false;    // the gradients of its arguments are hooked one by one
  bool forward_only = false;   // it gets the very arguments that it was called with
};

struct Dtype {
  PyObject* object = nullptr;
  uint32_t code = 0;
  uint32_t size = 0;  // bytes of one element
};

struct State {
  msprobe_session* session = nullptr;
  bool python_compatible = false;
  bool adding_may_wait = false;  // bytes of tensors go to files: the lock is given away for small ones, too
  bool wants_files = false;      // of tensors that no event has
  bool takes_later = false;      // elements may come after their record
  bool links_tensors = false;    // a tensor that was saved before is not written again
  std::deque<Api> apis;          // references stay good while more are added
  std::vector<Dtype> dtypes;
  /// Part of every tensor's version: results are not used again over a change of it. Counts what changes
  /// tensors without their own version being told.
  uint64_t epoch = 1;
  /// Not from the moment on when somebody got an alias that writes untold (a NumPy array), until the step
  /// ends.
  bool may_reuse = true;
  /// Threads that are inside our own code. The session may not go away under them: one may have given the
  /// interpreter lock away.
  int busy_threads = 0;

  // Of the framework.
  PyObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  PyObject* data_ptr = nullptr;
  PyObject* stride = nullptr;
  PyObject* storage_offset = nullptr;  // may be missing
  PyObject* is_neg = nullptr;
  PyObject* is_conj = nullptr;
  PyObject* strided = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* get_device = nullptr;       // (tensor) -> its device's ordinal; missing: no GPU is known
  PyObject* is_capturing = nullptr;     // () -> whether the current stream's work makes a graph
  PyObject* current_stream = nullptr;   // (ordinal) -> the stream
  PyObject* tracing_state = nullptr;    // () -> not None while a script is traced
  PyObject* compile_context = nullptr;  // () -> not None while something is compiled; None before PyTorch 2.0
  // Of our Python part.
  PyObject* record_type = nullptr;       // a tensor as describe() gives it
  PyObject* describe = nullptr;          // (value) -> JSON text, None, or something that can be walked
  PyObject* describe_named = nullptr;    // (key, value) -> JSON text, of dtype= and device=
  PyObject* format_stack = nullptr;      // (frame) -> (kept code objects, texts)
  PyObject* format_exception = nullptr;  // (exception) -> (kind, text)
  PyObject* make_backward =
      nullptr;  // (call, by argument) -> hook_arguments, hook_outputs; None: nodes have hooks
  PyObject* has_override = nullptr;  // (values) -> whether one of them, or a mode, sees calls; may be missing
  PyObject* call_unwrapped = nullptr;   // (function, args, kwargs) -> its result
  PyObject* plain_functions = nullptr;  // () -> a context in which nobody sees calls
  PyObject* call_again =
      nullptr;  // (API, number of the call, function, args, kwargs) -> its result; may be missing
  PyObject* asynchronous =
      nullptr;                     // (call, result, args, kwargs) -> whether it will complete the call later
  PyObject* gpu_failed = nullptr;  // (ordinal, why): it is not measured there any more
  PyObject* node_of_change = nullptr;  // (tensor changed in place) -> the node of that; may be missing
};
extern State state;

/// Not 0 while this thread is inside our own code (whose calls into the framework are nobody's business), or
/// inside a wrapped function (only the outermost is recorded).
struct ThreadState {
  int busy = 0;
  int depth = 0;
  bool wants_elements = false;  // of the entry being filled: for checksums, cropped tensors or files
  bool wants_files = false;     // for files, at least
  bool wants_now = false;       // nothing can come later
};
extern thread_local ThreadState this_thread;

class Busy {
 public:
  Busy() {
    ++this_thread.busy;
    ++state.busy_threads;
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    --this_thread.busy;
    --state.busy_threads;
  }
};

/// Writes the pending Python exception into dump_error_info.log, and clears it. An interruption by the user
/// is set again for later.
void log_exception(const char* where);
/// Writes a failure of our own into the same file.
void log_failure(const char* where, const char* what) noexcept;
/// Runs a part of our own. What it throws (there is no memory), or leaves as a Python exception, is logged
/// and goes no further.
template <typename Part>
void guarded(const char* where, Part part) noexcept {
  try {
    part();
    if (PyErr_Occurred() != nullptr) log_exception(where);
  } catch (const std::exception& error) {
    log_failure(where, error.what());
  } catch (...) {
    log_failure(where, "an unknown failure");
  }
}

/// Whether a compiler or a tracer looks at what is running: then its calls are no calls of the training.
bool is_being_traced();

/// Sets the exception that tells of a failed call of the collector. Returns nullptr.
PyObject* raise_status(msprobe_status status);
/// The same, if it failed; None otherwise.
PyObject* none_or_raise(msprobe_status status);

}  // namespace msprobe::python
