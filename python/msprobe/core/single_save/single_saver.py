# SPDX-License-Identifier: Apache-2.0
"""Saves values by name, one file per tensor, for `msprobe compare` and SingleComparator."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

from msprobe.core.common import log
from msprobe.core.files import whole_file

if TYPE_CHECKING:
    from msprobe.core.files import Path

_KINDS = "a real tensor, or a list, tuple or dict of real tensors"


class SingleSave:
    """Saves values of a training by name.

    It writes data/<name>/step<S>/rank<R>/micro_step<M>/<name>[.<index or key>].npy, and the statistics to <name>.json. There
    is one per process, which its class methods find; they warn and never raise.

    Args:
        dump_path: the folder for `data`.
        fmk: the framework; not used.
    """

    _instance: Optional[SingleSave] = None
    _root: str
    _step: int
    _micro_steps: Dict[str, int]

    def __new__(cls, dump_path: Path, fmk: str = "pytorch") -> SingleSave:
        if cls._instance is None:
            made = object.__new__(cls)
            made._root = os.path.abspath(dump_path)
            made._step = 0
            made._micro_steps = {}
            cls._instance = made
        return cls._instance

    def __init__(self, dump_path: Path, fmk: str = "pytorch") -> None:
        pass  # the arguments of a second construction are ignored

    @classmethod
    def save(cls, data: Dict[str, Any]) -> None:
        """Saves data, {name: value}. Each value is a real tensor of any shape, or a list, tuple or dict of such tensors; the
        elements are saved as float32. A name that occurs again within a step is its next micro step."""
        with _warning():
            self = cls._made()
            for name, value in self._named(data):
                number = self._micro_steps.get(name, 0)
                if self._write(name, value, "micro_step%d" % number):
                    self._micro_steps[name] = number + 1

    @classmethod
    def save_ex(cls, data: Dict[str, Any], micro_batch: Optional[int] = None) -> None:
        """Saves data like save(), with the number micro_batch as micro step, or with none."""
        with _warning():
            self = cls._made()
            for name, value in self._named(data):
                self._write(name, value, "" if micro_batch is None else "micro_step%s" % micro_batch)

    @classmethod
    def step(cls) -> None:
        """Ends a step: the next values belong to the next step."""
        with _warning():
            self = cls._made()
            self._step += 1
            self._micro_steps.clear()

    @classmethod
    def save_config(cls, data: Any) -> None:
        """Writes data, any value that JSON has, to configurations.json."""
        with _warning("configurations.json cannot be written: "):
            cls._made()._put("configurations.json", json.dumps(data, indent=4).encode())

    # ------------------------------------------------------------------

    @classmethod
    def _made(cls) -> SingleSave:
        if cls._instance is None:
            raise RuntimeError("SingleSave(dump_path) must be called first")
        return cls._instance

    @staticmethod
    def _named(data: Dict[str, Any]) -> List[Tuple[str, Any]]:
        if not isinstance(data, dict):
            log.warn("SingleSave: what is saved must be a dict of names and values, not %s" % type(data).__name__)
            return []
        good = [(name, value) for name, value in data.items() if _is_file_name(name)]
        if len(good) < len(data):
            log.warn("SingleSave: %s cannot be a file name: skipped" % ", ".join(
                repr(name) for name in data if not _is_file_name(name)))
        return good

    def _write(self, name: str, value: Any, micro_step: str) -> bool:
        """False, after a warning, if nothing of it could be saved."""
        with _warning("%s cannot be saved: " % name):
            parts = _parts(value)
            if parts is None:
                log.warn("SingleSave: %s is %s, not %s: skipped" % (name, type(value).__name__, _KINDS))
                return False
            folder = os.path.join("data", name, "step%d" % self._step, "rank%d" % _rank(), micro_step)
            statistics = []
            for key, array in parts:
                leaf = name if key is None else "%s.%s" % (name, key)
                self._put(os.path.join(folder, leaf + ".npy"), _npy(array))
                statistics.append((key, _statistics(array)))
            told = (statistics[0][1] if statistics and statistics[0][0] is None
                    else dict(statistics) if isinstance(value, dict) else [one for _, one in statistics])
            self._put(os.path.join(folder, name + ".json"), json.dumps({"data": told}, indent=4).encode())
            return True
        return False

    def _put(self, place: str, content: bytes) -> None:
        path = os.path.join(self._root, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with whole_file(path, "wb") as file:
            file.write(content)


@contextlib.contextmanager
def _warning(what: str = "") -> Iterator[None]:
    """Turns an exception into one warning, which begins with `what`: the training continues."""
    try:
        yield
    except Exception as error:
        log.warn_once("SingleSave: " + what + (str(error).partition("\n")[0] or type(error).__name__))


def _is_file_name(name: Any) -> bool:
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,199}", name) is not None


def _parts(value: Any) -> Optional[List[Tuple[Any, Any]]]:
    """Returns [(key, array)]; None if the value, or one of its elements, is not a tensor that can be saved."""
    if isinstance(value, dict):
        items: List[Tuple[Any, Any]] = list(value.items())
        if not all(_is_file_name(key) for key, _ in items):
            return None
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        items = [(None, value)]
    parts = [(key, _array(one)) for key, one in items]
    return None if any(array is None for _, array in parts) else parts


def _array(tensor: Any) -> Any:
    """Returns the elements as float32, because the Python tool saves all types in this way; None if it is not a real
    tensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(tensor, torch.Tensor):
        return None if tensor.is_complex() else tensor.detach().to("cpu").float().numpy()
    if hasattr(tensor, "asnumpy"):  # MindSpore
        array = tensor.asnumpy()
        return None if array.dtype.kind == "c" else array.astype("float32")
    return None


def _npy(array: Any) -> bytes:
    import io

    import numpy

    file = io.BytesIO()
    numpy.save(file, array, allow_pickle=False)
    return file.getvalue()


def _statistics(array: Any) -> Dict[str, Any]:
    if array.size == 0:
        numbers: List[Optional[float]] = [None] * 4
    else:
        wide = array.astype("float64")
        norm = float((wide * wide).sum()) ** 0.5
        numbers = [float(array.max()), float(array.min()), float(wide.mean()), norm]
    return dict(zip(("max", "min", "mean", "norm"), numbers), shape=list(array.shape))


def _rank() -> int:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank())
    return 0
