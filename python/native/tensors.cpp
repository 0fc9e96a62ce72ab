// SPDX-License-Identifier: Apache-2.0
#include "tensors.hpp"

#include "gpu.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace msprobe::python {
namespace {

constexpr int64_t kReuseAbove = 4 * 1024;  // bytes: below this, computing again is cheaper
// A smaller address may be an offset: the memory of processes and GPUs has higher addresses.
constexpr unsigned long long kLowestAddress = 1ULL << 44;

// Represents a tensor object at the collector. It does not keep the tensor alive, and knows without the
// interpreter whether the tensor still exists.
struct Owner {
  PyObject* reference = nullptr;  // weak
  PyObject* tensor = nullptr;     // an address, not a reference
  std::atomic<bool> alive{true};
  std::atomic<int> users{0};
};

std::unordered_map<PyObject*, Owner*> owners;              // by tensor
std::unordered_map<PyObject*, Owner*> owner_of_reference;  // by weak reference
PyObject* died_callback = nullptr;

std::mutex released_mutex;
std::vector<Owner*> released;

int owner_alive(void* owner) {
  return static_cast<Owner*>(owner)->alive.load(std::memory_order_acquire) ? 1 : 0;
}

void release_owner(void* pointer) {
  auto* owner = static_cast<Owner*>(pointer);
  if (owner->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(released_mutex);  // the interpreter lock may be released here
  released.push_back(owner);
}

void forget(Owner* owner) {
  const auto known = owners.find(owner->tensor);
  if (known != owners.end() && known->second == owner) owners.erase(known);
  owner_of_reference.erase(owner->reference);
}

PyObject* tensor_died(PyObject*, PyObject* reference) {
  const auto known = owner_of_reference.find(reference);
  if (known != owner_of_reference.end()) {
    known->second->alive.store(false, std::memory_order_release);
    const auto by_tensor = owners.find(known->second->tensor);
    if (by_tensor != owners.end() && by_tensor->second == known->second) owners.erase(by_tensor);
  }
  Py_RETURN_NONE;
}

Owner* owner_for(PyObject* tensor) {
  const auto known = owners.find(tensor);
  if (known != owners.end() && known->second->alive.load(std::memory_order_acquire)) {
    // An owner without users waits for its end and must not be used again.
    int users = known->second->users.load(std::memory_order_acquire);
    while (users > 0) {
      if (known->second->users.compare_exchange_weak(users, users + 1)) return known->second;
    }
  }
  auto* owner = new Owner;
  owner->tensor = tensor;
  owner->reference = PyWeakref_NewRef(tensor, died_callback);
  if (owner->reference == nullptr) {
    PyErr_Clear();
    delete owner;
    return nullptr;
  }
  owner->users.store(1, std::memory_order_release);
  owners[tensor] = owner;
  owner_of_reference[owner->reference] = owner;
  return owner;
}

}  // namespace

bool read_numbers(PyObject* tuple, int64_t* to, size_t* size) {
  if (tuple == nullptr || !PyTuple_Check(tuple)) return false;
  const Py_ssize_t length = PyTuple_Size(tuple);
  if (length < 0 || static_cast<size_t>(length) > kMaxDims) return false;
  for (Py_ssize_t at = 0; at < length; ++at) {
    to[at] = PyLong_AsLongLong(PyTuple_GetItem(tuple, at));
    if (to[at] == -1 && PyErr_Occurred() != nullptr) return false;
  }
  *size = static_cast<size_t>(length);
  return true;
}

namespace {

const Dtype* find_dtype(PyObject* object) {
  for (Dtype& candidate : state.dtypes) {
    if (candidate.object == object) return &candidate;
  }
  return nullptr;
}

bool is_complex(uint32_t code) {
  return code >= MSPROBE_COMPLEX32 && code <= MSPROBE_COMPLEX128;
}

int call_flag(PyObject* method, PyObject* tensor) {
  const Ref answer(PyObject_CallFunctionObjArgs(method, tensor, nullptr));
  return answer ? PyObject_IsTrue(answer.get()) : -1;
}

/// False for a storage whose memory was released: the address is then the offset into it.
bool has_storage(PyObject* object, unsigned long long pointer, uint32_t size) {
  if (state.storage_offset == nullptr) return pointer != 0;
  const Ref answer(PyObject_CallFunctionObjArgs(state.storage_offset, object, nullptr));
  if (!answer) return false;
  const unsigned long long offset = PyLong_AsUnsignedLongLong(answer.get());
  return PyErr_Occurred() == nullptr && pointer != offset * size;
}

}  // namespace

bool read_tensor(PyObject* object, Geometry* geometry, msprobe_tensor* tensor, int64_t* bytes,
                 bool* on_host) {
  const Ref layout(PyObject_GetAttr(object, names.layout));
  if (!layout || layout.get() != state.strided) return false;
  const Ref is_cpu(PyObject_GetAttr(object, names.is_cpu));
  if (!is_cpu) return false;
  *on_host = is_cpu.get() == Py_True;
  if (!*on_host && !knows_gpus()) return false;
  const Ref dtype_object(PyObject_GetAttr(object, names.dtype));
  if (!dtype_object) return false;
  const Dtype* dtype = find_dtype(dtype_object.get());
  if (dtype == nullptr || dtype->size == 0) return false;
  const Ref shape(PyObject_GetAttr(object, names.shape));
  size_t ndim = 0;
  size_t strides = 0;
  if (!read_numbers(shape.get(), geometry->shape, &ndim)) return false;
  const Ref stride(PyObject_CallFunctionObjArgs(state.stride, object, nullptr));
  if (!read_numbers(stride.get(), geometry->strides, &strides) || strides != ndim) return false;
  const Ref address(PyObject_CallFunctionObjArgs(state.data_ptr, object, nullptr));
  if (!address) return false;
  const unsigned long long pointer = PyLong_AsUnsignedLongLong(address.get());
  if (pointer == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;
  for (size_t at = 0; at < ndim; ++at) {
    if (__builtin_mul_overflow(geometry->count, geometry->shape[at], &geometry->count)) return false;
  }
  if (geometry->count != 0 && pointer < kLowestAddress && !has_storage(object, pointer, dtype->size))
    return false;
  const int negative = call_flag(state.is_neg, object);
  const int conjugate = is_complex(dtype->code) ? call_flag(state.is_conj, object) : 0;
  if (negative < 0 || conjugate < 0) return false;
  const Ref requires_grad(PyObject_GetAttr(object, names.requires_grad));
  if (!requires_grad) return false;

  *tensor = msprobe_tensor{};
  tensor->struct_size = sizeof(msprobe_tensor);
  tensor->data = reinterpret_cast<const void*>(static_cast<uintptr_t>(pointer));
  tensor->shape = geometry->shape;
  tensor->strides = geometry->strides;
  tensor->ndim = static_cast<uint32_t>(ndim);
  tensor->dtype = dtype->code;
  tensor->flags = MSPROBE_TENSOR_HAS_REQUIRES_GRAD;
  if (requires_grad.get() == Py_True) tensor->flags |= MSPROBE_TENSOR_REQUIRES_GRAD;
  if (negative > 0) tensor->flags |= MSPROBE_TENSOR_NEG;
  if (conjugate > 0) tensor->flags |= MSPROBE_TENSOR_CONJ;
  if (__builtin_mul_overflow(geometry->count, static_cast<int64_t>(dtype->size), bytes)) return false;
  return true;
}

namespace {

/// The same for a tensor on the host.
bool fill(PyObject* object, Geometry* geometry, msprobe_tensor* tensor, int64_t* bytes) {
  bool on_host = false;
  return read_tensor(object, geometry, tensor, bytes, &on_host) && on_host;
}

// The number of a NumPy type by its text ("<f4"), and the size of an element. 255: the collector cannot read
// its values, or they are not in the machine's byte order.
uint32_t array_dtype(const char* text, int64_t* size) {
  *size = 0;
  if (text[0] != '<' && text[0] != '|') return MSPROBE_DTYPE_OTHER;
  msprobe_dtype_info info{};
  for (uint32_t dtype = 0; msprobe_get_dtype(dtype, &info) == MSPROBE_OK; ++dtype) {
    if (info.numpy[0] == '\0' || std::strcmp(text + 1, info.numpy + 1) != 0) continue;
    *size = info.size;
    return dtype;
  }
  return MSPROBE_DTYPE_OTHER;
}

// Fills `tensor` from an array by NumPy's `__array_interface__`. False (an exception may be pending) if the
// array has none, or has a type or strides that the collector does not know.
bool fill_array(PyObject* array, Geometry* geometry, msprobe_tensor* tensor, int64_t* bytes) {
  const Ref interface(PyObject_GetAttr(array, names.array_interface));
  if (!interface || !PyDict_Check(interface.get())) return false;
  const auto member = [&](const char* name) { return PyDict_GetItemString(interface.get(), name); };
  PyObject* type = member("typestr");
  PyObject* data = member("data");
  if (type == nullptr || data == nullptr || !PyTuple_Check(data) || PyTuple_Size(data) < 1) return false;
  const Utf8 type_text(type);
  if (type_text.text() == nullptr || type_text.size() < 3) return false;
  int64_t size = 0;
  const uint32_t dtype = array_dtype(type_text.text(), &size);
  if (dtype == MSPROBE_DTYPE_OTHER) return false;
  size_t ndim = 0;
  if (!read_numbers(member("shape"), geometry->shape, &ndim)) return false;
  for (size_t at = 0; at < ndim; ++at) {
    if (__builtin_mul_overflow(geometry->count, geometry->shape[at], &geometry->count)) return false;
  }
  PyObject* strides = member("strides");
  const bool has_strides = strides != nullptr && strides != Py_None;
  if (has_strides) {
    size_t count = 0;
    if (!read_numbers(strides, geometry->strides, &count) || count != ndim) return false;
    for (size_t at = 0; at < ndim; ++at) {
      if (geometry->strides[at] % size != 0) return false;
      geometry->strides[at] /= size;
    }
  }
  const unsigned long long pointer = PyLong_AsUnsignedLongLong(PyTuple_GetItem(data, 0));
  if (pointer == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) return false;

  *tensor = msprobe_tensor{};
  tensor->struct_size = sizeof(msprobe_tensor);
  tensor->data = reinterpret_cast<const void*>(static_cast<uintptr_t>(pointer));
  tensor->shape = geometry->shape;
  tensor->strides = has_strides ? geometry->strides : nullptr;
  tensor->ndim = static_cast<uint32_t>(ndim);
  tensor->dtype = dtype;
  return !__builtin_mul_overflow(geometry->count, size, bytes);
}

bool is_framework_tensor(PyObject* value) {
  const int is_one = PyObject_IsInstance(value, state.tensor_type);
  if (is_one < 0) PyErr_Clear();
  return is_one == 1;
}

// `object`: the owner of the elements, or the object that they were copied from.
void set_owner(PyObject* object, int64_t bytes, msprobe_tensor* tensor) {
  if (!state.links_tensors && (bytes < kReuseAbove || !state.may_reuse)) return;
  const int64_t version = version_of(object);
  if (!state.links_tensors && version < 0) return;
  Owner* owner = owner_for(object);
  if (owner == nullptr) return;
  if (state.links_tensors) {
    // Checksums detect writes that no version counts.
    tensor->flags |= MSPROBE_TENSOR_UNCOUNTED;
    tensor->version = static_cast<uint64_t>(version);
  } else {
    tensor->version = (state.epoch << 32) | (static_cast<uint64_t>(version) & 0xffffffffU);
  }
  tensor->owner = owner;
  tensor->alive = owner_alive;
  tensor->release = release_owner;
}

void submit(msprobe_builder* builder, const char* key, const msprobe_tensor& tensor, int64_t bytes,
            uint64_t* slot) {
  if (bytes < kReleaseLockAbove && !state.adding_may_wait) {
    msprobe_add_tensor(builder, key, &tensor, slot);
    return;
  }
  PyThreadState* thread = PyEval_SaveThread();
  msprobe_add_tensor(builder, key, &tensor, slot);
  PyEval_RestoreThread(thread);
}

}  // namespace

PyMethodDef tensor_died_method = {"_tensor_died", tensor_died, METH_O, nullptr};

bool make_tensor_callback() {
  died_callback = PyCFunction_New(&tensor_died_method, nullptr);
  return died_callback != nullptr;
}

void collect_released() {
  std::vector<Owner*> gone;
  {
    const std::lock_guard lock(released_mutex);
    if (released.empty()) return;
    gone.swap(released);
  }
  for (Owner* owner : gone) {
    forget(owner);
    Py_DECREF(owner->reference);
    delete owner;
  }
}

bool read_host_tensor(PyObject* object, HostTensor* tensor) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (type != state.tensor_type && type != state.parameter_type) return false;
  if (fill(object, &tensor->geometry, &tensor->tensor, &tensor->bytes)) return true;
  PyErr_Clear();
  return false;
}

bool read_array(PyObject* object, HostTensor* tensor) {
  if (fill_array(object, &tensor->geometry, &tensor->tensor, &tensor->bytes)) return true;
  PyErr_Clear();
  return false;
}

int64_t version_of(PyObject* tensor) {
  const Ref version(PyObject_GetAttr(tensor, names.version));
  const int64_t value = version ? PyLong_AsLongLong(version.get()) : -1;
  if (value < 0) PyErr_Clear();  // tensors of inference mode have no version
  return value;
}

Added add_plain_tensor(msprobe_builder* builder, const char* key, PyObject* object) {
  Geometry geometry;
  msprobe_tensor tensor;
  int64_t bytes = 0;
  bool on_host = false;
  if (!read_tensor(object, &geometry, &tensor, &bytes, &on_host)) {
    PyErr_Clear();
    return Added::not_plain;
  }
  if (!on_host) {
    const int ordinal = gpu_for(object, tensor);
    if (ordinal < 0) return Added::not_plain;
    add_on_gpu(builder, key, object, tensor, ordinal);
    return Added::yes;
  }
  set_owner(object, bytes, &tensor);
  submit(builder, key, tensor, bytes, nullptr);
  return Added::yes;
}

namespace {

// A Record is a tuple: (tensor or NumPy array with the elements or None, type, dtype text, dtype code, shape,
// requires_grad or None, extra JSON or None, statistics or None, deferred callback or None[, the tensor whose
// elements these are[, whether the elements come later]]). A tensor on a device must be one that gpu_takes()
// accepts.
class Record {
 public:
  /// False, with an exception pending, if the object is not a Record.
  bool read(PyObject* record);

  msprobe_tensor tensor{};
  int64_t bytes = 0;
  PyObject* deferred = nullptr;  // None: nothing arrives later
  int gpu = -1;                  // ordinal of the GPU that measures it
  PyObject* on_gpu = nullptr;    // the tensor on that GPU

 private:
  bool read_statistics(PyObject* statistics);
  void set_source(PyObject* source);

  Geometry geometry_;
  msprobe_statistics statistics_{};
};

bool Record::read(PyObject* record) {
  PyObject* elements = nullptr;
  const char* type = nullptr;
  const char* dtype_text = nullptr;
  const char* extra = nullptr;
  unsigned int dtype = 0;
  PyObject* shape = nullptr;
  PyObject* requires_grad = nullptr;
  PyObject* statistics = nullptr;
  PyObject* source = Py_None;
  int later = 0;
  if (PyArg_ParseTuple(record, "OzzIOOzOO|Op", &elements, &type, &dtype_text, &dtype, &shape, &requires_grad,
                       &extra, &statistics, &deferred, &source, &later) == 0) {
    return false;
  }
  bool have_elements = false;
  if (elements != Py_None) {
    bool on_host = true;
    have_elements = is_framework_tensor(elements)
                        ? read_tensor(elements, &geometry_, &tensor, &bytes, &on_host)
                        : fill_array(elements, &geometry_, &tensor, &bytes);
    if (!have_elements && PyErr_Occurred() != nullptr) return false;
    if (!on_host) {
      gpu = gpu_for(elements, tensor);
      have_elements = gpu >= 0;
      on_gpu = elements;
    }
  }
  if (!have_elements) {
    tensor = msprobe_tensor{};
    tensor.struct_size = sizeof(msprobe_tensor);
    size_t ndim = 0;
    if (!read_numbers(shape, geometry_.shape, &ndim)) {
      if (PyErr_Occurred() == nullptr)
        PyErr_SetString(PyExc_TypeError, "the shape of a record is not a tuple of numbers");
      return false;
    }
    tensor.shape = geometry_.shape;
    tensor.ndim = static_cast<uint32_t>(ndim);
    tensor.dtype = dtype;
  }
  tensor.type = type;
  tensor.dtype_text = dtype_text;
  tensor.extra = extra;
  tensor.flags &= ~static_cast<uint32_t>(MSPROBE_TENSOR_HAS_REQUIRES_GRAD | MSPROBE_TENSOR_REQUIRES_GRAD);
  // None: the field is not written, but a gradient may arrive.
  if (requires_grad != Py_None) tensor.flags |= MSPROBE_TENSOR_HAS_REQUIRES_GRAD;
  if (requires_grad == Py_None || requires_grad == Py_True) tensor.flags |= MSPROBE_TENSOR_REQUIRES_GRAD;
  if (deferred != Py_None) tensor.flags |= later != 0 ? MSPROBE_TENSOR_LATER : MSPROBE_TENSOR_DEFERRED;
  if ((have_elements || later != 0) && source != Py_None) set_source(source);
  return statistics == Py_None || read_statistics(statistics);
}

// A copy is a new object each time, so the tensor that it was copied from shows whether the elements are the
// same as before. If their address is unknown, that tensor object identifies them.
void Record::set_source(PyObject* source) {
  if (!state.links_tensors) return;
  const Ref address(PyObject_CallFunctionObjArgs(state.data_ptr, source, nullptr));
  const unsigned long long pointer = address ? PyLong_AsUnsignedLongLong(address.get()) : 0;
  PyErr_Clear();
  const bool known = address && pointer != 0 && pointer != static_cast<unsigned long long>(-1);
  tensor.source = known ? reinterpret_cast<const void*>(static_cast<uintptr_t>(pointer)) : source;
  set_owner(source, bytes, &tensor);
}

bool Record::read_statistics(PyObject* statistics) {
  statistics_.struct_size = sizeof(msprobe_statistics);
  long long integer_max = 0;
  long long integer_min = 0;
  unsigned long long count = 0;
  unsigned long long zero = 0;
  unsigned long long nan = 0;
  unsigned long long inf = 0;
  if (PyArg_ParseTuple(statistics, "ddddLLKKKK", &statistics_.max, &statistics_.min, &statistics_.mean,
                       &statistics_.norm, &integer_max, &integer_min, &count, &zero, &nan, &inf) == 0) {
    return false;
  }
  statistics_.integer_max = integer_max;
  statistics_.integer_min = integer_min;
  statistics_.count = count;
  statistics_.zero = zero;
  statistics_.nan = nan;
  statistics_.inf = inf;
  tensor.statistics = &statistics_;
  return true;
}

}  // namespace

bool fill_gradient(uint64_t entry, const char* path, PyObject* object) {
  Geometry geometry;
  msprobe_tensor plain;
  Record record;
  Ref described;
  int64_t bytes = 0;
  const msprobe_tensor* tensor = &plain;
  if (!fill(object, &geometry, &plain, &bytes)) {
    PyErr_Clear();
    this_thread.wants_elements = this_thread.wants_files = this_thread.wants_now = true;
    described = Ref(PyObject_CallFunctionObjArgs(state.describe, object, nullptr));
    this_thread.wants_now = false;
    if (!described || reinterpret_cast<PyObject*>(Py_TYPE(described.get())) != state.record_type)
      return false;
    if (!record.read(described.get())) return false;
    tensor = &record.tensor;
  }
  PyThreadState* thread = PyEval_SaveThread();
  msprobe_fill_gradient(state.session, entry, path, tensor);
  PyEval_RestoreThread(thread);
  return true;
}

bool add_record(msprobe_builder* builder, const char* key, PyObject* tuple) {
  Record record;
  if (!record.read(tuple)) return false;
  if (record.gpu >= 0) {
    add_on_gpu(builder, key, record.on_gpu, record.tensor, record.gpu);
    return true;
  }
  const bool comes_later = record.deferred != Py_None;
  uint64_t slot = 0;
  submit(builder, key, record.tensor, record.bytes, comes_later ? &slot : nullptr);
  if (!comes_later) return true;
  const Ref number(PyLong_FromUnsignedLongLong(slot));
  const Ref done(number ? PyObject_CallFunctionObjArgs(record.deferred, number.get(), nullptr) : nullptr);
  return static_cast<bool>(done);
}

}  // namespace msprobe::python
