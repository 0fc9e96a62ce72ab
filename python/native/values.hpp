// SPDX-License-Identifier: Apache-2.0
// Walks the arguments and results of calls and hands them to the collector.
#pragma once

#include "state.hpp"

namespace msprobe::python {

/// Adds one value of any type. False with an exception pending if it cannot be walked to its end.
bool add_value(msprobe_builder* builder, const char* key, PyObject* value, int depth = 0);

/// One section of an entry. A failure while it is filled is logged, and the section is then left out.
class Section {
 public:
  Section(const msprobe_event& event, msprobe_section section);
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  ~Section();

  /// False: not wanted.
  explicit operator bool() const { return builder_ != nullptr; }
  /// The elements of a tuple; any other value is the only element. `masked`: positions that are null.
  void add_all(PyObject* values, uint64_t masked = 0);
  /// The members of a dict.
  void add_members(PyObject* members, const char* masked = nullptr);
  /// The values of a dict, as further elements.
  void add_values(PyObject* members);

 private:
  void add(const char* key, PyObject* value);

  msprobe_builder* builder_ = nullptr;
  bool failed_ = false;
  int exceptions_;
  size_t position_ = 0;
};

}  // namespace msprobe::python
