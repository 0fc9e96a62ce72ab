// SPDX-License-Identifier: Apache-2.0
// The gradients of a call of a module, observed: hooks on nodes of the autograd graph that is there anyway.
#pragma once

#include "python.hpp"

namespace msprobe::python {

/// bind_autograd(sequence_number, accumulation_of, combine, queue_callback): what Gradients needs of PyTorch.
/// sequence_number() -> the number that the next node gets, None if nodes have none; accumulation_of(leaf) ->
/// its node; combine(total, parts, inside, note) -> what is recorded; queue_callback(f): calls f at the end
/// of this backward.
PyObject* bind_autograd(PyObject*, PyObject* arguments);

/// Makes the type Gradients. Gradients(receiver): of one call. enter(tensors, others) with the inputs that
/// require a gradient and other tensors that the call gets, leave(tensors) with such outputs. In a backward
/// receiver.begin_backward() is called when the first gradient of an output has come, and
/// receiver.end_backward(gradients of inputs, gradients of outputs), two tuples with None for what did not
/// come, when all are there or the backward ends.
PyObject* make_gradients_type();

}  // namespace msprobe::python
