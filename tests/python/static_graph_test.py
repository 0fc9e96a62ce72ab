# SPDX-License-Identifier: Apache-2.0
"""Files that save() and save_grad() ask MindSpore to write, by a stand-in; tests/peer/mindspore_saves.py has the real one."""

import os
import unittest
from types import SimpleNamespace
from unittest import mock

import doubles  # noqa: F401 - the stand-in
import numpy
import mindspore as ms
from mindspore.tape import computed

from msprobe.mindspore import MsprobeInitStep, save, save_grad, step


class StaticGraph(unittest.TestCase):
    def setUp(self):
        ms.ops.TensorDump.written.clear()
        self.written = ms.ops.TensorDump.written

    def test_names(self):
        tensor = ms.Tensor([1.0, 2.0])
        for folder in ("dumps", "dumps" + os.sep):
            self.written.clear()
            save(folder, "hidden", {"a": tensor, "b": [tensor, (None, tensor)]})
            self.assertEqual(self.written, [("dumps/{step}/{rank}/hidden." + name, [1.0, 2.0]) for name in ("a", "b.0", "b.1.1")])
        self.written.clear()
        save("dumps", "alone", tensor)
        self.assertEqual(self.written, [("dumps/{step}/{rank}/alone", [1.0, 2.0])])

    def test_gradients(self):
        weight = ms.Parameter(numpy.array([3.0], "float32"))

        def times(tensor, factor):
            return computed(tensor.asnumpy() * factor, [tensor], lambda gradient: [gradient * factor])

        def loss():
            return times(save_grad("dumps", "product", times(weight, 2.0)), 5.0)

        value, gradient = ms.value_and_grad(loss, None, [weight])()
        self.assertEqual(self.written, [("dumps/{step}/{rank}/product_grad", [5.0])])
        self.assertEqual(float(value.asnumpy()[0]), 30.0)
        self.assertEqual(float(gradient[0].asnumpy()[0]), 10.0)

    def test_refusals(self):
        for call in (lambda: save("dumps", "number", 3), lambda: save("dumps", "inner", [3]),
                     lambda: save_grad("dumps", "list", [ms.Tensor([1.0])])):
            with self.assertRaisesRegex(TypeError, "tensor"):
                call()
        self.assertEqual(self.written, [])

    def test_first_step_of_kernel_dumps(self):
        first = []
        training = SimpleNamespace(original_args=lambda: SimpleNamespace(cur_step_num=7))
        MsprobeInitStep().on_train_begin(training)  # MindSpore has no such function
        with mock.patch.object(ms._c_expression, "_set_init_iter", first.append, create=True):
            MsprobeInitStep().on_train_begin(training)
        self.assertEqual(first, [7])

    def test_steps_on_a_cpu(self):
        step()
        self.assertEqual(self.written, [])


if __name__ == "__main__":
    unittest.main()
