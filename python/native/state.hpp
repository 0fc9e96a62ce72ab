// SPDX-License-Identifier: Apache-2.0
// The state of the extension: the single session of the process, and objects of the framework and of our
// Python part. The interpreter lock guards everything except members that belong to a thread.
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
  uint32_t name = 0;           // the collector's number of it
  bool distributed = false;    // its output is its arguments after the call
  bool dropout = false;        // without effect, and so without a backward, if its p is 0
  uint64_t masked_inputs = 0;  // positions written as null, for buffers that only receive
  uint64_t masked_outputs = 0;
  std::string masked_keyword;  // the same for a keyword argument
  bool by_argument = false;    // the gradients of its arguments are hooked one by one
  bool forward_only = false;   // it must get the very arguments of the call
};

struct Dtype {
  PyObject* object = nullptr;
  uint32_t code = 0;
  uint32_t size = 0;  // bytes of one element
};

struct State {
  msprobe_session* session = nullptr;
  bool python_compatible = false;
  bool adding_may_wait = false;  // bytes of tensors go to files: the lock is released even for small ones
  bool wants_files = false;      // also of tensors outside events
  bool takes_later = false;      // elements may arrive after their record
  bool links_tensors = false;    // a tensor that was saved before is not written again
  std::deque<Api> apis;          // a deque, so that references stay valid when functions are added
  std::vector<Dtype> dtypes;
  /// A part of every tensor's version: a result is not reused after the epoch changes. It counts changes to
  /// tensors that do not change the tensor's own version.
  uint64_t epoch = 1;
  /// False from the moment when a program gets an alias (a NumPy array) through which it can write without a
  /// trace, until the step ends.
  bool may_reuse = true;
  /// The number of threads inside our own code. The session must not be destroyed while it is not 0, because
  /// such a thread may have released the interpreter lock.
  int busy_threads = 0;

  // Objects of the framework.
  PyObject* tensor_type = nullptr;
  PyObject* parameter_type = nullptr;
  PyObject* data_ptr = nullptr;
  PyObject* stride = nullptr;
  PyObject* storage_offset = nullptr;  // may be missing
  PyObject* is_neg = nullptr;
  PyObject* is_conj = nullptr;
  PyObject* strided = nullptr;
  PyObject* is_grad_enabled = nullptr;
  PyObject* get_device = nullptr;       // (tensor) -> ordinal of its device; missing: no GPU is known
  PyObject* is_capturing = nullptr;     // () -> whether a graph captures the current stream's work
  PyObject* current_stream = nullptr;   // (ordinal) -> the stream
  PyObject* tracing_state = nullptr;    // () -> not None while a script is traced
  PyObject* compile_context = nullptr;  // () -> not None while something is compiled; None before PyTorch 2.0
  // Objects of our Python part.
  PyObject* record_type = nullptr;       // the type of a tensor's description by describe()
  PyObject* describe = nullptr;          // (value) -> JSON text, None, or something with parts
  PyObject* describe_named = nullptr;    // (key, value) -> JSON text, of dtype= and device=
  PyObject* format_stack = nullptr;      // (frame) -> (kept code objects, texts)
  PyObject* format_exception = nullptr;  // (exception) -> (kind, text)
  PyObject* make_backward =
      nullptr;  // (call, by argument) -> hook_arguments, hook_outputs; None: nodes have hooks
  PyObject* has_override = nullptr;    // (values) -> whether a mode or one of them sees calls; may be missing
  PyObject* call_unwrapped = nullptr;  // (function, args, kwargs) -> its result
  PyObject* plain_functions = nullptr;  // () -> a context in which no object sees calls
  PyObject* call_again =
      nullptr;  // (API, number of the call, function, args, kwargs) -> its result; may be missing
  PyObject* asynchronous =
      nullptr;                     // (call, result, args, kwargs) -> whether it will complete the call later
  PyObject* gpu_failed = nullptr;  // (ordinal, why): stops measuring on this device
  PyObject* node_of_change = nullptr;  // (tensor changed in place) -> the node of that; may be missing
};
extern State state;

/// busy is not 0 while this thread is inside our own code, whose calls into the framework must not be
/// recorded. depth is not 0 inside a wrapped function, because only the outermost one is recorded.
struct ThreadState {
  int busy = 0;
  int depth = 0;
  bool wants_elements = false;  // for the current entry: for checksums, cropped tensors or files
  bool wants_files = false;     // for files, at least
  bool wants_now = false;       // nothing may arrive later
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

/// Writes the pending Python exception into dump_error_info.log and clears it. A user's interruption is set
/// again for later.
void log_exception(const char* where);
/// Writes a failure of msprobe's code into the same file.
void log_failure(const char* where, const char* what) noexcept;
/// Runs a part of msprobe's code. An exception that it throws (out of memory), or a Python exception that it
/// leaves pending, is logged and goes no further.
template <typename Part>
void guarded(const char* where, Part part) noexcept {
  try {
    part();
    if (PyErr_Occurred() != nullptr) log_exception(where);
  } catch (const std::exception& error) {
    log_failure(where, error.what());
  } catch (...) {
    log_failure(where, "an unknown error");
  }
}

/// Does a compiler or a tracer inspect the running code? Its calls then do not belong to the training.
bool is_being_traced();

/// Sets the exception for a failed call of the collector. Returns nullptr.
PyObject* raise_status(msprobe_status status);
/// Like raise_status() if the call failed; None otherwise.
PyObject* none_or_raise(msprobe_status status);

}  // namespace msprobe::python
