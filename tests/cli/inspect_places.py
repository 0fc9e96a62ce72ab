#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wherever a file or a folder hides what runs when it is loaded, `inspect --fail-on` does not end with 0, and it does on
the folders of models, checkpoints and dumps as they are. The files come from a recipe.

usage: inspect_places.py MSPROBE FOLDER    (of the recipe)
"""

import json
import os
import shutil
import sys

import harness


def inspect(msprobe, scratch, level, *paths):
    return harness.run(msprobe, ["inspect", "--fail-on", level, *map(str, paths)], scratch)


def rated(msprobe, scratch, folder):
    """The answer of --json about a folder that is rated, and the status."""
    result = harness.run(msprobe, ["inspect", "--json", "--fail-on", "unknown", str(folder)], scratch)
    return json.loads(result.stdout)["rated"], result.returncode


def listed(msprobe, scratch, folder):
    facts, _ = rated(msprobe, scratch, folder)
    return {file["path"]: file for file in facts["listed"]}


def in_archives(msprobe, scratch, places):
    files = dict(places.hidden())
    harness.check(len(files) >= 120, f"only {len(files)} files")
    places.write(scratch, files)
    # A pickle that can be unpacked is named; one that cannot ends with 2.
    opaque = ("tar_in_zip", "gzip_in_zip", "xz_in_zip", "zip_twenty_deep", "pickle_named_npy", "safetensors_in_zip")
    for name in files:
        result = inspect(msprobe, scratch, "dangerous", name)
        place = name.split("-")[0]
        harness.check(result.returncode in (1, 2), f"{name}: passes with {result.returncode}: {result.stdout}")
        if place not in opaque:
            harness.check("posix.getpid" in result.stdout, f"{name}: not named: {result.stdout}{result.stderr}")
        if result.returncode == 2:
            harness.check(result.stderr.startswith(f"msprobe: error: {name}: "), f"{name}: {result.stderr!r}")


def in_a_folder_of_archives(msprobe, scratch, places):
    """The same files are found by their content below a folder, at the same level."""
    files = dict(places.hidden())
    places.write(scratch / "all" / "below", files)
    shown = listed(msprobe, scratch, "all")
    harness.check_equal("files without a line", sorted(set(files) - {path.split("/")[1] for path in shown}), [])


def in_programs(msprobe, scratch, places):
    files = dict(places.programs())
    places.write(scratch, files)
    for name in files:
        result = inspect(msprobe, scratch, "dangerous", name)
        harness.check_equal(f"{name}: {result.stdout}", result.returncode, 2)
        told = any(word in result.stderr for word in ("code", "program", "not one of PyTorch"))
        harness.check(told, f"{name}: {result.stderr!r}")


def in_texts(msprobe, scratch, places):
    for name, text, dangerous in places.TEXTS:
        folder = scratch / f"of_{name}"
        places.write(folder, {name: text, "README.md": "A model.\n"})
        statuses = [inspect(msprobe, scratch, level, folder).returncode for level in ("dangerous", "unknown")]
        harness.check_equal(f"{name}: {listed(msprobe, scratch, folder)}", statuses, [int(dangerous), 1])
        harness.check_equal(name, list(listed(msprobe, scratch, folder)), [name])


def in_metadata(msprobe, scratch, places):
    for number, (metadata, dangerous) in enumerate(places.METADATA):
        places.write(scratch / str(number), {"m.safetensors": places.safetensors(metadata)})
        for path in (f"{number}/m.safetensors", str(number)):
            statuses = [inspect(msprobe, scratch, level, path).returncode for level in ("dangerous", "unknown")]
            harness.check_equal(f"{path}: {metadata}", statuses, [int(dangerous), 1])


def in_other_formats(msprobe, scratch, places):
    for name, data in places.OTHERS.items():
        places.write(scratch / f"of_{name}", {name: data})
        statuses = [inspect(msprobe, scratch, level, f"of_{name}").returncode for level in ("dangerous", "unknown")]
        packed = name.endswith(".gz")
        harness.check_equal(name, statuses, [2, 2] if packed else [0, 1])


def numpy_tricks(msprobe, scratch, places):
    """Code that runs by pointers in arrays, with no name but those of NumPy."""
    files = {f"{name}-{kind}": data for name, value in places.numpy_tricks().items() for kind, data in places.packed(value).items()}
    places.write(scratch, files)
    for name in files:
        statuses = [inspect(msprobe, scratch, level, name).returncode for level in ("dangerous", "unknown")]
        harness.check_equal(name, statuses, [1, 1])
    objects = {f"objects-{kind}": data for kind, data in places.packed(places.object_array()).items()}
    places.write(scratch, objects)
    for name in objects:
        statuses = [inspect(msprobe, scratch, level, name).returncode for level in ("dangerous", "unknown")]
        # The elements of an array of objects cannot be shown, which is a separate problem.
        harness.check_equal(name, statuses, [2, 1] if name.endswith("-npy") else [0, 1])


def harmless_folders_pass(msprobe, scratch, places):
    places.write(scratch / "model", places.HARMLESS)
    for folder in ("model", places.cache_snapshot(scratch, places.HARMLESS)):
        facts, status = rated(msprobe, scratch, folder)
        harness.check_equal(f"{folder}: files that are not ok", facts["listed"], [])
        harness.check_equal("status", status, 0)
        harness.check_equal("files", (facts["files"], facts["ok"]), (len(places.HARMLESS),) * 2)


def links_and_special_files(msprobe, scratch, places):
    outside = scratch / "outside"
    places.write(outside, {"secret.pt": places.recipe.torch_zip(places.PICKLES["protocol_2"])})
    folder = scratch / "folder"
    places.write(folder, {"README.md": "A model.\n"})
    harness.check_equal("status", inspect(msprobe, scratch, "unknown", folder).returncode, 0)
    (folder / "inside.md").symlink_to("README.md")
    (folder / "circle").symlink_to(".")
    harness.check_equal("links that stay", inspect(msprobe, scratch, "unknown", folder).returncode, 0)
    for name, target in (("out.pt", "../outside/secret.pt"), ("folder_out", "../outside"), ("nowhere", "missing")):
        (folder / name).symlink_to(target)
        file = listed(msprobe, scratch, folder)[name]
        harness.check_equal(name, (file["rating"], file["problem"].startswith("a link that leads")), ("unknown", True))
        harness.check_equal(name, inspect(msprobe, scratch, "dangerous", folder).returncode, 2)
        (folder / name).unlink()
    os.mkfifo(folder / "pipe")
    harness.check_equal("pipe", listed(msprobe, scratch, folder)["pipe"]["problem"], "not a regular file")


def folders_that_are_too_deep(msprobe, scratch, places):
    """Nobody knows what is in them."""
    for depth, status in ((20, 1), (100, 2)):
        places.write(scratch / str(depth) / "/".join(["d"] * depth), {"m.pkl": places.PICKLES["protocol_2"]})
        result = inspect(msprobe, scratch, "dangerous", str(depth))
        harness.check_equal(f"{depth}: {result.stdout}{result.stderr}", result.returncode, status)
    harness.check("folders are nested too deeply" in result.stderr, result.stderr)


def a_snapshot_is_rated_through_its_links(msprobe, scratch, places):
    files = {**places.HARMLESS, "old.bin": places.recipe.torch_zip(places.PICKLES["protocol_0"]), "code.py": b"import os\n"}
    snapshot = places.cache_snapshot(scratch, files)
    found = {name: file["rating"] for name, file in listed(msprobe, scratch, snapshot).items()}
    harness.check_equal("ratings", found, {"code.py": "unknown", "old.bin": "dangerous"})
    # A folder that was filled from a cache elsewhere.
    local = scratch / "local"
    local.mkdir()
    (local / "old.bin").symlink_to((snapshot / "old.bin").resolve())
    harness.check_equal("local", listed(msprobe, scratch, local)["old.bin"]["rating"], "dangerous")


def hidden_files_and_strays(msprobe, scratch, places):
    """A pickle beside dump.json, one whose name begins with a dot, one far below."""
    bad = places.PICKLES["protocol_4"]
    statistics = b'{"task": "statistics", "level": "L1", "framework": "pytorch", "data": {}}'
    for below in ("", "/.cache", "/a/b/c/d"):
        places.write(scratch / "dump", {"dump.json": statistics})
        harness.check_equal("clean dump", inspect(msprobe, scratch, "unknown", "dump").returncode, 0)
        places.write(scratch / f"dump{below}", {".stray": bad})
        result = inspect(msprobe, scratch, "dangerous", "dump")
        harness.check_equal(below, result.returncode, 1)
        harness.check("posix.getpid" in result.stdout, result.stdout)
        shutil.rmtree(scratch / "dump")


def nothing_to_rate(msprobe, scratch):
    (scratch / "empty" / "below").mkdir(parents=True)
    result = inspect(msprobe, scratch, "dangerous", "empty")
    harness.check_equal("status", result.returncode, 2)
    harness.check("there is no file in it" in result.stderr, result.stderr)
    (scratch / "empty" / "below" / "model.safetensors").write_bytes(b"")
    result = inspect(msprobe, scratch, "unknown", "empty")
    harness.check_equal("empty files", result.returncode, 2)
    harness.check("its files are empty" in result.stderr, result.stderr)
    (scratch / "empty" / "garbage").write_bytes(bytes(range(256)))
    harness.check_equal("garbage", inspect(msprobe, scratch, "unknown", "empty").returncode, 1)


def one_sum_and_a_line_for_each(msprobe, scratch, places):
    bad = {"a.pkl": places.PICKLES["protocol_2"], "b.py": b"1\n", "cut.safetensors": places.HARMLESS["model.safetensors"][:20]}
    places.write(scratch / "m", {**places.HARMLESS, **bad})
    result = inspect(msprobe, scratch, "never", "m")
    harness.check("files " not in result.stdout, result.stdout)
    result = inspect(msprobe, scratch, "unknown", "m")
    lines = result.stdout.splitlines()
    total = len(places.HARMLESS) + 3
    sums = [line for line in lines if line.startswith("  files")]
    harness.check_equal("sums", len(sums), 1)
    harness.check(f"  files      {total}, " in sums[0], sums[0])
    harness.check(f": {total - 3} ok, 2 unknown, 1 dangerous" in sums[0], sums[0])
    ratings = [line.split()[:2] for line in lines if line.startswith("    ") and line.split()[0] in ("dangerous", "unknown")]
    harness.check_equal("lines", ratings, [["dangerous", "a.pkl"], ["unknown", "b.py"], ["unknown", "cut.safetensors"]])
    again = inspect(msprobe, scratch, "unknown", "m")
    harness.check_equal("the same bytes", again.stdout, result.stdout)


def tests(msprobe, folder):
    sys.path.insert(0, folder)
    import places

    return harness.tests_of_script(msprobe=msprobe, places=places)


harness.main(tests)
