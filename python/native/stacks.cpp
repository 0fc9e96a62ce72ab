// SPDX-License-Identifier: Apache-2.0
#include "stacks.hpp"

#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace msprobe::python {
namespace {

// From a key made of code positions to one made of texts: several positions make the same text.
std::unordered_map<uint64_t, uint64_t> text_keys;
// The code objects of all known stacks: while they live, no other code can have their address.
std::unordered_set<PyObject*> kept_code;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

bool position_key(PyObject* innermost, uint64_t* key) {
  uint64_t hash = 1;
  Ref frame = Ref::borrowed(innermost);
  while (frame && frame.get() != Py_None) {
    const Ref code(PyObject_GetAttr(frame.get(), names.frame_code));
    const Ref instruction(PyObject_GetAttr(frame.get(), names.frame_instruction));
    if (!code || !instruction) return false;
    const long position = PyLong_AsLong(instruction.get());
    if (position == -1 && PyErr_Occurred() != nullptr) PyErr_Clear();
    hash = mix(mix(hash, reinterpret_cast<uintptr_t>(code.get())), static_cast<uint64_t>(position));
    frame = Ref(PyObject_GetAttr(frame.get(), names.frame_back));
    if (!frame) return false;
  }
  *key = hash;
  return true;
}

bool define(PyObject* frame, uint64_t position, uint64_t* text_key) {
  const Ref made(PyObject_CallFunctionObjArgs(state.format_stack, frame, nullptr));
  if (!made) return false;
  PyObject* codes = nullptr;
  PyObject* texts = nullptr;
  if (PyArg_ParseTuple(made.get(), "OO", &codes, &texts) == 0) return false;
  const Py_ssize_t code_count = PySequence_Size(codes);
  for (Py_ssize_t at = 0; at < code_count; ++at) {
    const Ref code(PySequence_GetItem(codes, at));
    if (!code) return false;
    if (kept_code.insert(code.get()).second) Py_INCREF(code.get());
  }
  const Py_ssize_t count = PySequence_Size(texts);
  if (count < 0) return false;
  std::vector<Ref> bytes;
  std::vector<const char*> frames;
  uint64_t hash = 2;
  for (Py_ssize_t at = 0; at < count; ++at) {
    const Ref text(PySequence_GetItem(texts, at));
    if (!text) return false;
    bytes.emplace_back(PyUnicode_AsEncodedString(text.get(), "utf-8", "replace"));
    if (!bytes.back()) return false;
    frames.push_back(PyBytes_AsString(bytes.back().get()));
    const auto size = static_cast<size_t>(PyBytes_Size(bytes.back().get()));
    for (size_t byte = 0; byte < size; ++byte)
      hash = (hash ^ static_cast<unsigned char>(frames.back()[byte])) * 0x100000001b3ULL;
    hash = mix(hash, size);
  }
  *text_key = hash;
  text_keys[position] = hash;
  msprobe_define_stack(state.session, hash, frames.data(), frames.size());
  return true;
}

}  // namespace

void use_current_stack(const msprobe_event& event) {
  PyObject* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  if (frame == nullptr) return;
  const Ref held = Ref::borrowed(frame);
  uint64_t position = 0;
  uint64_t text_key = 0;
  if (!position_key(frame, &position)) return log_exception("reading the call stack");
  const auto known = text_keys.find(position);
  if (known != text_keys.end()) {
    text_key = known->second;
    if (msprobe_use_stack(state.session, &event, text_key) != MSPROBE_SKIP) return;
  }
  if (!define(frame, position, &text_key)) return log_exception("reading the call stack");
  msprobe_use_stack(state.session, &event, text_key);
}

void forget_stacks() {
  text_keys.clear();
  for (PyObject* code : kept_code) Py_DECREF(code);
  kept_code.clear();
}

}  // namespace msprobe::python
