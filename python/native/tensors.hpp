// SPDX-License-Identifier: Apache-2.0
// Passes tensors of the framework to the collector by pointer and geometry.
#pragma once

#include "state.hpp"

namespace msprobe::python {

inline constexpr size_t kMaxDims = 64;
inline constexpr int64_t kReleaseLockAbove =
    64 * 1024;  // bytes: below, giving the interpreter lock away costs more

struct Geometry {
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];
  int64_t count = 1;
};

/// The numbers of a tuple. False, perhaps with an exception pending, if it is not a tuple of at most kMaxDims
/// numbers.
bool read_numbers(PyObject* tuple, int64_t* to, size_t* size);

/// A tensor in host memory. `tensor` points into `geometry`, so the struct cannot be copied.
struct HostTensor {
  HostTensor() = default;
  HostTensor(const HostTensor&) = delete;
  HostTensor& operator=(const HostTensor&) = delete;

  Geometry geometry;
  msprobe_tensor tensor;
  int64_t bytes = 0;
};
/// False, without an exception, unless it is a torch.Tensor or Parameter (exactly these types) with elements
/// in host memory.
bool read_host_tensor(PyObject* object, HostTensor* tensor);
/// The same for a NumPy array.
bool read_array(PyObject* object, HostTensor* tensor);

/// Fills `tensor` from a strided tensor object on the host or on a device. False (an exception may be
/// pending) for anything else.
bool read_tensor(PyObject* object, Geometry* geometry, msprobe_tensor* tensor, int64_t* bytes, bool* on_host);

enum class Added {
  yes,
  not_plain,  // describe() can handle it. No exception is pending
};

/// Adds a torch.Tensor or Parameter (exactly these types) with elements in host memory, or on a GPU whose
/// kernel measures it.
Added add_plain_tensor(msprobe_builder* builder, const char* key, PyObject* tensor);
/// Uses such a tensor as the whole of an earlier gradient.
bool fill_gradient(uint64_t entry, const char* path, PyObject* tensor);
/// Adds a Record of our Python part. False with an exception pending.
bool add_record(msprobe_builder* builder, const char* key, PyObject* record);

/// `_version` of a tensor; -1 (and no exception) if it has none.
int64_t version_of(PyObject* tensor);

/// Frees the owners that the collector has released.
void collect_released();
/// The callback of the weak references to tensors.
extern PyMethodDef tensor_died_method;
bool make_tensor_callback();

}  // namespace msprobe::python
