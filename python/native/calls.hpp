// SPDX-License-Identifier: Apache-2.0
// Calls of functions and modules, and their backward, as events.
#pragma once

#include "state.hpp"

namespace msprobe::python {

/// call_api(api, function, args, kwargs): calls the function and records the call.
PyObject* call_api(PyObject*, PyObject* arguments);
/// add_api(name, distributed, dropout, masked inputs, masked outputs, masked keyword, by argument, forward
/// only) -> number
PyObject* add_api(PyObject*, PyObject* arguments);
/// enter_module(name number, args, kwargs) -> Call, or None if nothing is recorded
PyObject* enter_module(PyObject*, PyObject* arguments);
/// parameter_gradient(name number, parameter, expected, gradient)
PyObject* parameter_gradient(PyObject*, PyObject* arguments);
PyObject* probe_gradient(PyObject*, PyObject* arguments);

/// call_quietly(function, *args): calls it; nothing that it calls in turn is recorded.
PyObject* call_quietly(PyObject*, PyObject* arguments);

/// Makes the type Call.
PyObject* make_call_type();

}  // namespace msprobe::python
