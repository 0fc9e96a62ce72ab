# SPDX-License-Identifier: Apache-2.0
"""Draws which ranks of a parallel training hold which layers: plot_model_parallelism(ParallelConfig(...))."""

import os

from .files import whole_file

_MOST_RANKS = 1024
_MOST_LAYERS = 256
_DIMENSIONS = ("tp", "cp", "ep", "dp", "pp")


class ParallelConfig:
    """How a training is split, in Megatron's terms. Raises ValueError for inconsistent values."""

    def __init__(self, world_size, num_layers, tensor_parallel_size=1, pipeline_parallel_size=1,
                 num_layers_per_virtual_pipeline_stage=None, order="tp-cp-ep-dp-pp", standalone_embedding_stage=False,
                 output_path="./"):
        self.world_size = _positive("world_size", world_size, _MOST_RANKS)
        self.num_layers = _positive("num_layers", num_layers, _MOST_LAYERS)
        self.tensor_parallel_size = _positive("tensor_parallel_size", tensor_parallel_size)
        self.pipeline_parallel_size = _positive("pipeline_parallel_size", pipeline_parallel_size)
        self.standalone_embedding_stage = bool(standalone_embedding_stage)
        self.output_path = os.fspath(output_path)
        split = self.tensor_parallel_size * self.pipeline_parallel_size
        self.data_parallel_size = _quotient("world_size", self.world_size,
                                            "tensor_parallel_size * pipeline_parallel_size", split)
        stages = self.pipeline_parallel_size - self.standalone_embedding_stage
        if stages == 0:
            raise ValueError("a stage for the embedding alone needs another one for the layers")
        each = _quotient("num_layers", self.num_layers, "the number of stages with layers", stages)
        self.layers_of_chunk = each
        if num_layers_per_virtual_pipeline_stage is not None:
            self.layers_of_chunk = _positive("num_layers_per_virtual_pipeline_stage",
                                             num_layers_per_virtual_pipeline_stage)
        self.chunks = _quotient("the layers of a stage", each, "num_layers_per_virtual_pipeline_stage",
                                self.layers_of_chunk)
        self.order = self._order_of(order)

    def _order_of(self, order):
        names = order.lower().split("-") if isinstance(order, str) else [order]
        if any(name not in _DIMENSIONS for name in names) or len(set(names)) != len(names):
            raise ValueError("order must name %s at most once each, with - between them" % ", ".join(_DIMENSIONS))
        for name in _DIMENSIONS:
            if self.size(name) > 1 and name not in names:
                raise ValueError("order leaves out %s, which is %d" % (name, self.size(name)))
        return names

    def size(self, name):
        return {"tp": self.tensor_parallel_size, "dp": self.data_parallel_size,
                "pp": self.pipeline_parallel_size}.get(name, 1)

    def groups(self):
        """Returns [(ranks, copy, stage)] for the groups of ranks that hold parts of the same layers, ordered by their
        first ranks."""
        groups = {}
        for rank in range(self.world_size):
            place, rest = {"dp": 0, "pp": 0}, rank
            for name in self.order:
                rest, place[name] = divmod(rest, self.size(name))
            groups.setdefault((place["dp"], place["pp"]), []).append(rank)
        return sorted((ranks, copy, stage) for (copy, stage), ranks in groups.items())

    def content(self, stage, chunk):
        """Returns the contents of a stage in a chunk, such as `Embed+L1-2`; empty for a chunk of an embedding-only
        stage."""
        first_with_layers = int(self.standalone_embedding_stage)
        parts = ["Embed"] if stage == chunk == 0 else []
        if stage >= first_with_layers:
            stages = self.pipeline_parallel_size - first_with_layers
            begin = (chunk * stages + stage - first_with_layers) * self.layers_of_chunk + 1
            end = begin + self.layers_of_chunk - 1
            parts.append("L%d" % begin if begin == end else "L%d-%d" % (begin, end))
            if end == self.num_layers:
                parts.append("Out")
        return "+".join(parts)

    def file_name(self):
        return "ws%d_ln%d_tp%d_pp%d_vpp%d.png" % (self.world_size, self.num_layers, self.tensor_parallel_size,
                                                  self.pipeline_parallel_size, self.chunks)


def _positive(name, value, most=None):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("%s must be a positive whole number" % name)
    if most is not None and value > most:
        raise ValueError("%s is %d, and at most %d can be drawn" % (name, value, most))
    return value


def _quotient(name, value, by_name, by):
    if value % by:
        raise ValueError("%s (%d) is not a multiple of %s (%d)" % (name, value, by_name, by))
    return value // by


def ranks_text(ranks):
    """Returns `rank 3`, `ranks 0-3` or `ranks 0, 4`."""
    if len(ranks) == 1:
        return "rank %d" % ranks[0]
    if ranks[-1] - ranks[0] == len(ranks) - 1:
        return "ranks %d-%d" % (ranks[0], ranks[-1])
    if len(ranks) > 4:
        return "ranks %d, %d ... %d" % (ranks[0], ranks[1], ranks[-1])
    return "ranks " + ", ".join(str(rank) for rank in ranks)


def plot_model_parallelism(config):
    """Draws a PNG in the folder of the configuration, replacing an existing one, and returns its path."""
    if not isinstance(config, ParallelConfig):
        raise TypeError("plot_model_parallelism takes a ParallelConfig")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plot_model_parallelism needs matplotlib, which this Python does not have "
                          "(pip install matplotlib, or python3-matplotlib)") from None
    groups = config.groups()
    # A separate figure leaves the program's own figures alone; no picture of matplotlib may exceed 65,535 pixels.
    figure = Figure(figsize=(2.5 + 2 * min(config.chunks, 32), 1.6 + 0.3 * len(groups)), dpi=100, tight_layout=True)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for row, (_, copy, stage) in enumerate(groups):
        bars = [(chunk - 0.45, 0.9) for chunk in range(config.chunks)]
        axes.broken_barh(bars, (row - 0.45, 0.9), facecolors="C%d" % (copy % 10), alpha=0.6)
        for chunk in range(config.chunks):
            axes.text(chunk, row, config.content(stage, chunk), ha="center", va="center", fontsize=8,
                      in_layout=False)
    axes.set_yticks(range(len(groups)))
    axes.set_yticklabels(["%s, copy %d" % (ranks_text(ranks), copy) for ranks, copy, _ in groups], fontsize=8)
    axes.invert_yaxis()
    axes.set_xticks(range(config.chunks))
    axes.set_xlabel("virtual pipeline stage")
    axes.set_title("%d layers: DP %d, TP %d, PP %d, VPP %d" % (
        config.num_layers, config.data_parallel_size, config.tensor_parallel_size, config.pipeline_parallel_size,
        config.chunks))
    os.makedirs(config.output_path, exist_ok=True)
    path = os.path.join(config.output_path, config.file_name())
    with whole_file(path, "wb") as file:
        figure.savefig(file, format="png")
    return path
