# SPDX-License-Identifier: Apache-2.0
"""The ranks that hold each layer; the expected values are from pictures of the Python tool 26.2. The picture itself is
drawn where matplotlib is."""

import os
import sys
import tempfile
import types
import unittest

from msprobe.core.common.megatron_utils import ParallelConfig, plot_model_parallelism
from msprobe.core.parallel_layout import ranks_text


def table(**keys):
    config = ParallelConfig(**keys)
    return [(ranks, copy, [config.content(stage, chunk) for chunk in range(config.chunks)])
            for ranks, copy, stage in config.groups()]


class Layout(unittest.TestCase):
    def test_virtual_stages(self):
        self.assertEqual(
            table(world_size=8, num_layers=8, tensor_parallel_size=2, pipeline_parallel_size=2,
                  num_layers_per_virtual_pipeline_stage=2),
            [([0, 1], 0, ["Embed+L1-2", "L5-6"]), ([2, 3], 1, ["Embed+L1-2", "L5-6"]),
             ([4, 5], 0, ["L3-4", "L7-8+Out"]), ([6, 7], 1, ["L3-4", "L7-8+Out"])])

    def test_stage_of_the_embedding_alone(self):
        self.assertEqual(
            table(world_size=3, num_layers=8, pipeline_parallel_size=3, num_layers_per_virtual_pipeline_stage=2,
                  standalone_embedding_stage=True),
            [([0], 0, ["Embed", ""]), ([1], 0, ["L1-2", "L5-6"]), ([2], 0, ["L3-4", "L7-8+Out"])])

    def test_order_of_ranks(self):
        self.assertEqual(
            table(world_size=8, num_layers=4, tensor_parallel_size=2, pipeline_parallel_size=2, order="pp-dp-tp"),
            [([0, 4], 0, ["Embed+L1-2"]), ([1, 5], 0, ["L3-4+Out"]), ([2, 6], 1, ["Embed+L1-2"]),
             ([3, 7], 1, ["L3-4+Out"])])
        self.assertEqual([ranks_text(ranks) for ranks in ([3], [0, 1, 2], [0, 4], list(range(0, 20, 2)))],
                         ["rank 3", "ranks 0-2", "ranks 0, 4", "ranks 0, 2 ... 18"])

    def test_file_names(self):
        config = ParallelConfig(world_size=4, num_layers=8, pipeline_parallel_size=2,
                                num_layers_per_virtual_pipeline_stage=1)
        self.assertEqual(config.file_name(), "ws4_ln8_tp1_pp2_vpp4.png")

    def test_what_does_not_go_together(self):
        for keys, reason in (
            ({"world_size": 0}, "world_size must be a positive whole number"),
            ({"world_size": True}, "world_size must be"),
            ({"world_size": 4.0}, "world_size must be"),
            ({"world_size": 1025}, "at most 1024"),
            ({"num_layers": 257}, "at most 256"),
            ({"world_size": 6, "tensor_parallel_size": 4}, "not a multiple of tensor_parallel_size"),
            ({"pipeline_parallel_size": 2, "num_layers": 5}, "not a multiple of the number of stages"),
            ({"pipeline_parallel_size": 2, "num_layers_per_virtual_pipeline_stage": 3},
             "not a multiple of num_layers_per"),
            ({"standalone_embedding_stage": True}, "needs another one"),
            ({"order": "a-b"}, "order must name"),
            ({"order": 3}, "order must name"),
            ({"order": "tp-tp-dp-pp"}, "order must name"),
            ({"order": "tp-pp"}, "order leaves out dp, which is 4"),
        ):
            with self.assertRaisesRegex(ValueError, reason, msg=str(keys)):
                ParallelConfig(**{"world_size": 4, "num_layers": 8, **keys})

    def test_without_matplotlib(self):
        kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "matplotlib"}
        sys.modules["matplotlib"] = types.ModuleType("matplotlib")  # empty: nothing of it can be imported
        try:
            with self.assertRaisesRegex(ImportError, "needs matplotlib, which this Python does not have"):
                plot_model_parallelism(ParallelConfig(world_size=1, num_layers=1))
        finally:
            del sys.modules["matplotlib"]
            sys.modules.update(kept)

    def test_picture(self):
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            self.skipTest("matplotlib is not installed")
        with tempfile.TemporaryDirectory(prefix="msprobe-test-") as folder:
            out = os.path.join(folder, "new", "folder")
            config = ParallelConfig(world_size=8, num_layers=8, tensor_parallel_size=2, output_path=out)
            path = plot_model_parallelism(config)
            self.assertEqual(path, plot_model_parallelism(config))  # in place of the one that is there
            self.assertEqual(os.listdir(out), ["ws8_ln8_tp2_pp1_vpp1.png"])
            with open(path, "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")


if __name__ == "__main__":
    unittest.main()
