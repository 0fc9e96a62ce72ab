// SPDX-License-Identifier: Apache-2.0
// Tensors of the framework, handed to the collector by pointer and geometry.
#pragma once

#include <functional>

#include "state.hpp"

namespace msprobe::python {

enum class Added {
  yes,
  not_plain,  // no plain tensor on the host: describe() knows more. No exception is pending
};

/// Adds a torch.Tensor or Parameter (exactly these types) that has its elements in host memory.
Added add_plain_tensor(msprobe_builder* builder, const char* key, PyObject* tensor);
/// The same, as the whole of an earlier gradient.
bool fill_gradient(uint64_t entry, const char* path, PyObject* tensor);
/// Hands a torch.Tensor that has its elements in host memory to `take`, without the interpreter's lock.
/// False, and no exception pending: it is none.
bool with_plain_tensor(PyObject* tensor, const std::function<void(const msprobe_tensor&)>& take);
/// Adds a Record of our Python part. False with an exception pending.
bool add_record(msprobe_builder* builder, const char* key, PyObject* record);

/// `_version` of a tensor; -1 (and no exception) if it has none.
int64_t version_of(PyObject* tensor);

/// Frees the owners that the collector let go of.
void collect_released();
/// The callback of the weak references that stand for tensors.
extern PyMethodDef tensor_died_method;
bool make_tensor_callback();

}  // namespace msprobe::python
