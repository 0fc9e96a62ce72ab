// SPDX-License-Identifier: Apache-2.0
// The session and its verbs, as functions of the module. Each mirrors one call of msprobe/collector.h.
#pragma once

#include "state.hpp"

namespace msprobe::python {

/// bind(namespace): the objects of the framework and of our Python part, as its attributes.
PyObject* bind(PyObject*, PyObject* binding);
PyObject* open_session(PyObject*, PyObject* arguments);
PyObject* close_session(PyObject*, PyObject*);
/// In a child after fork(): its parent has the session.
PyObject* disown(PyObject*, PyObject*);
PyObject* info(PyObject*, PyObject*);
PyObject* setting(PyObject*, PyObject* arguments);
PyObject* running(PyObject*, PyObject*);
PyObject* start(PyObject*, PyObject*);
PyObject* stop(PyObject*, PyObject*);
PyObject* step(PyObject*, PyObject*);
PyObject* flush(PyObject*, PyObject*);
PyObject* set_rank(PyObject*, PyObject* arguments);
PyObject* set_risk(PyObject*, PyObject* arguments);
PyObject* set_init_step(PyObject*, PyObject* arguments);
PyObject* set_dump_path(PyObject*, PyObject* arguments);
PyObject* restart_step(PyObject*, PyObject*);
PyObject* drop_step(PyObject*, PyObject*);
PyObject* set_recording(PyObject*, PyObject* arguments);
PyObject* set_tokens(PyObject*, PyObject* arguments);
PyObject* reload(PyObject*, PyObject*);
PyObject* log_error(PyObject*, PyObject* arguments);
PyObject* intern(PyObject*, PyObject* arguments);
PyObject* set_pseudo_parent(PyObject*, PyObject* arguments);
PyObject* describe_training(PyObject*, PyObject* arguments);
PyObject* set_micro_step(PyObject*, PyObject* arguments);
/// Tensors changed although their versions did not: results known so far are not used again.
PyObject* changed_unseen(PyObject*, PyObject*);
/// The same may happen at any time until the step ends.
PyObject* may_change_unseen(PyObject*, PyObject*);
/// Whether the entry being filled by this thread needs elements of tensors: for checksums or files.
PyObject* wants_elements(PyObject*, PyObject*);
PyObject* wants_files(PyObject*, PyObject*);
PyObject* elements_may_come_later(PyObject*, PyObject*);
PyObject* fill_tensor(PyObject*, PyObject* arguments);
PyObject* set_compatible(PyObject*, PyObject* arguments);
/// save(value, name, gradient) -> number of the gradient's entry, or None if nothing is saved now
PyObject* save(PyObject*, PyObject* arguments);
PyObject* fill_saved_gradient(PyObject*, PyObject* arguments);
PyObject* fill_statistics(PyObject*, PyObject* arguments);

}  // namespace msprobe::python
