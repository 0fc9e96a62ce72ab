# SPDX-License-Identifier: Apache-2.0
"""Code that the end-to-end tests share: running msprobe in a clean environment, packed test data, and reporting in TAP."""

import atexit
import functools
import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import traceback
import uuid

TIME_LIMIT_S = 60


class Skip(Exception):
    """The test cannot be made here."""


def environment(msprobe, home):
    """Nothing of the caller's settings changes what a test sees."""
    kept = {
        name: os.environ[name]
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LD_LIBRARY_PATH")
        if name in os.environ
    }
    folder = str(pathlib.Path(msprobe).resolve().parent)
    return {
        **kept,
        "PATH": folder + ":/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "TZ": "UTC",
    }


def run(msprobe, arguments, folder, status=None, **more):
    """One run with its output caught; the folder is its working directory and its home. It must end with `status`, where one is
    given."""
    result = subprocess.run(
        [msprobe, *arguments],
        cwd=folder,
        env={**environment(msprobe, folder), **more.pop("env", {})},
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
        **({} if "input" in more else {"stdin": subprocess.DEVNULL}),
        **more,
    )
    if status is not None:
        check_equal(f"exit status of {arguments}, which says {result.stdout}{result.stderr}", result.returncode, status)
    return result


@functools.cache
def data(folder, *names):
    """These folders of the test data under one roof, as they would be if nothing were kept as NAME.tar.xz. It lasts as long
    as the process."""
    roof = pathlib.Path(tempfile.gettempdir(), f"msprobe-data-{uuid.uuid4().hex}").resolve()  # nothing to escape in it
    roof.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, roof)
    for name in names:
        (roof / name).parent.mkdir(parents=True, exist_ok=True)
        lay_out(pathlib.Path(folder, name).resolve(), roof / name)
    return roof


def lay_out(source, place):
    """A folder may be kept in part: what unit tests read of it, as files, and the others in the archive."""
    packed = pathlib.Path(f"{source}.tar.xz")
    if packed.exists():
        with tarfile.open(packed) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian 12 has none
            archive.extractall(place)
    if packed.exists() or any(source.rglob("*.tar.xz")):
        place.mkdir(exist_ok=True)
        for name in {path.name.removesuffix(".tar.xz") for path in source.glob("*")}:
            lay_out(source / name, place / name)
    else:
        place.symlink_to(source.resolve(strict=True))


def items_of(page):
    """The numbers of a page of docs/differences, in its order."""
    return re.findall(r"^\| ([A-Z][0-9]+) \|", pathlib.Path(page).read_text(encoding="utf-8"), re.MULTILINE)


def prepared_interpreter(python=sys.executable):
    """A Python for acc_check that has PyTorch already."""
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
    import prepared

    return prepared.interpreter(python)


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def check_equal(what, got, expected):
    check(got == expected, f"{what}: got {got!r}, expected {expected!r}")


def check_refused(result, *mentioned):
    """Exit status 2, nothing on stdout, one line that says why (and perhaps one with a hint)."""
    check_equal("exit status", result.returncode, 2)
    check_equal("stdout", result.stdout, "")
    lines = result.stderr.splitlines()
    check(lines and lines[0].startswith("msprobe: error: "), f"stderr: {result.stderr!r}")
    check(len(lines) == 1 or (len(lines) == 2 and lines[1].startswith("msprobe: hint: ")), result.stderr)
    for text in mentioned:
        check(text in lines[0], f"'{text}' is not in: {lines[0]}")


def tap(tests):
    """Runs (name, function of a scratch folder) pairs; returns the exit status."""
    tests, failed = list(tests), 0
    print(f"1..{len(tests)}")
    for number, (name, function) in enumerate(tests, 1):
        try:
            with tempfile.TemporaryDirectory(prefix="msprobe-cli-") as scratch:
                function(pathlib.Path(scratch).resolve())
            print(f"ok {number} {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} {name} # SKIP {reason}", flush=True)
        except Exception as error:  # whatever goes wrong is this test's failure only
            failed += 1
            text = str(error) if isinstance(error, AssertionError) else traceback.format_exc()
            print(f"not ok {number} {name}")
            print("".join(f"# {line}\n" for line in text.splitlines()), end="", flush=True)
    return 1 if failed else 0


def tests_of_script(**given):
    """(name, function of a scratch folder) for each function of the script that takes `scratch`, the program and nothing that
    is not given here; an underscore before what it does not use. It is named for what it shows."""
    tests = []
    for function in list(vars(sys.modules["__main__"]).values()):
        if inspect.isfunction(function) and function.__module__ == "__main__":
            taken = {name: name.lstrip("_") for name in inspect.signature(function).parameters}
            if {"msprobe", "scratch"} <= set(taken.values()) <= {"scratch", *given}:
                title = function.__name__.removeprefix("check_").replace("_", " ")
                tests.append((title, functools.partial(called_with, function, taken, given)))
    check(tests, "the script has no tests")
    return tests


def called_with(function, taken, given, scratch):
    values = {**given, "scratch": scratch}
    function(**{name: values[value] for name, value in taken.items()})


def main_of_script(module=None):
    """Entry of a script whose tests take the program and a scratch folder. Without the Python module that they need all are
    skipped."""
    if module is not None:
        try:
            importlib.import_module(module)
        except ImportError:
            print(f"1..0 # SKIP no {module}")
            sys.exit(0)
    main(lambda msprobe: tests_of_script(msprobe=msprobe))


def main(make_tests):
    """Entry of a test script: its arguments, the program first, are given to `make_tests`."""
    msprobe, *others = sys.argv[1:]
    sys.exit(tap(make_tests(str(pathlib.Path(msprobe).resolve()), *others)))
