#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A corpus of pickles made by a recipe: none that would run something passes `inspect --fail-on dangerous`, and none
of those that frameworks write is called dangerous. That the dangerous ones are, Python itself is asked.

usage: inspect_corpus.py MSPROBE FOLDER    (of the recipe)
"""

import io
import json
import pickle
import sys

import harness


class Sought(pickle.Unpickler):
    """Notes what it is asked for, and gives something that can be called in its place."""

    def __init__(self, data):
        super().__init__(io.BytesIO(data))
        self.names = []

    def find_class(self, module, name):
        self.names.append((module, name))
        if (module, name) == ("argparse", "Namespace"):
            return super().find_class(module, name)
        return lambda *_args: lambda *_more: None


def sought_by_python(data):
    reader = Sought(data)
    try:
        reader.load()
    except Exception:  # what comes behind the name does not matter
        pass
    return reader.names


def facts_of(msprobe, scratch, files):
    """The answer of --json about each file, by path."""
    for name, data in files.items():
        (scratch / name).write_bytes(data)
    result = harness.run(msprobe, ["inspect", "--json", *files], scratch)
    return {facts["path"]: facts for facts in json.loads(result.stdout)}


def gate(msprobe, scratch, name, level="dangerous"):
    return harness.run(msprobe, ["inspect", "--fail-on", level, name], scratch).returncode


def rated(facts, rating):
    return {entry["name"] for entry in (facts.get("file") or {}).get("globals", []) if entry["rating"] == rating}


def calls_are_found(msprobe, scratch, recipe):
    files, names = {}, {}
    for name, data, *sought in recipe.calls():
        files[name] = data
        names[name] = ".".join(sought)
    harness.check(len(files) > 200, f"only {len(files)} files")
    unnamed = []
    for name, facts in facts_of(msprobe, scratch, files).items():
        status = gate(msprobe, scratch, name)
        harness.check(status in (1, 2), f"{name}: {names[name]} passes with {status}")
        if names[name] not in rated(facts, "dangerous"):
            harness.check(facts["problems"], f"{name}: {names[name]} is neither named nor is there a problem")
            unnamed.append(name)
    # In these the pickle is out of reach, or a part of the file that is refused as a whole.
    refused = ("legacy_tar", "twin_data_pkl", "zip_in_zip", "zip_in_deflated_zip", "pickle_behind_zip", "safetensors_face")
    harness.check_equal("not named", [name for name in unnamed if not name.endswith(refused)], [])


def calls_are_real(_msprobe, _scratch, recipe):
    for module, name in recipe.CALLS:
        names = sought_by_python(recipe.call(module, name, 4))
        harness.check((module, name) in names, f"{module}.{name} is not in {names}")
    for trick, opcodes in recipe.TRICKS.items():
        names = sought_by_python(b"\x80\x04" + opcodes + b".")
        harness.check(("posix", "getpid") in names, f"{trick}: {names}")


def tricks_do_not_pass(msprobe, scratch, recipe):
    files = dict(recipe.tricks())
    harness.check(len(files) > 150, f"only {len(files)} files")
    for name, facts in facts_of(msprobe, scratch, files).items():
        for level in ("dangerous", "unknown"):
            status = gate(msprobe, scratch, name, level)
            harness.check(status in (1, 2), f"{name}: --fail-on {level} ends with {status}")
        if any(name.startswith(trick) for trick in recipe.TRICKS):
            dangerous = rated(facts, "dangerous")
            harness.check("posix.getpid" in dangerous, f"{name}: posix.getpid is not in {dangerous}")


def compressed_pickles_are_refused(msprobe, scratch, recipe):
    for name, data in recipe.compressed():
        (scratch / name).write_bytes(data)
        # Short ones are stored as they are, so that the name in them is found.
        harness.check(gate(msprobe, scratch, name) in (1, 2), name)


def harmless_files_pass(msprobe, scratch, recipe):
    files = dict(recipe.harmless())
    harness.check(len(files) > 100, f"only {len(files)} files")
    for name, facts in facts_of(msprobe, scratch, files).items():
        harness.check_equal(f"{name}: called dangerous", rated(facts, "dangerous"), set())
        if name.endswith(".npy"):  # its elements are no numbers, so there is nothing to show
            continue
        harness.check_equal(f"{name}: problems", facts["problems"], [])
        harness.check_equal(f"{name}: status", gate(msprobe, scratch, name), 0)


def tests(msprobe, folder):
    sys.path.insert(0, folder)
    import recipe

    return harness.tests_of_script(msprobe=msprobe, recipe=recipe)


harness.main(tests)
