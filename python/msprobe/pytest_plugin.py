# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest: the fixture assert_same_run, which is also a function to import.

pip installs it for all tests; where msprobe is installed otherwise, `pytest -p msprobe.pytest_plugin` or
`pytest_plugins = ["msprobe.pytest_plugin"]` in a conftest.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

import pytest

if TYPE_CHECKING:
    import os
    from typing import Union

    from msprobe import Comparison

    Path = Union[str, os.PathLike[str]]


def assert_same_run(a: Path, b: Path, noise: Optional[Path] = None, **options: Any) -> Comparison:
    """Fails unless two dumps agree: all that was compared is equal or differs by rounding.

    Args:
        a: the run under test: the path of a dump, or what msprobe.record() gave.
        b: the reference run.
        noise: a third dump, of the reference code on other kernels; its differences count as rounding.
        options: other arguments of msprobe.compare().

    Returns the Comparison.

    Raises AssertionError with the answer of msprobe.compare(); ComparisonError if the dumps cannot be compared, and
    NothingCompared if there was nothing to compare.
    """
    __tracebackhide__ = True
    import msprobe
    found = msprobe.compare(a, b, noise_floor=noise, **options)
    if not found:
        raise AssertionError("the runs differ\n\n%r" % found)
    return found


@pytest.fixture(name="assert_same_run", scope="session")
def _fixture() -> Callable[..., Comparison]:
    """The function assert_same_run(a, b, noise=None), which fails unless two dumps agree."""
    return assert_same_run
