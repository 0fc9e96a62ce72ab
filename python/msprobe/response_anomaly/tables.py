# SPDX-License-Identifier: Apache-2.0
"""The category (script, punctuation, ...) of each token of a model: NAME_LASTTOKEN.json, one per model."""

import array
import functools
import json
import os
import re

_NUMBERS = {"english_latin_space": 1, "english_latin": 2, "punctuation": 3, "whitespace": 4}  # the native part knows these
_MOST_TOKENS = 10_000_000


def read_models(path):
    """Model name -> the tokens with which its answers end."""
    models = _read(path)
    if not all(isinstance(one, dict) for one in models.values()):
        raise ValueError("%s: each model must have an object with its eos" % path)
    return models


def find_tables(folder):
    """Model name -> the last token that counts."""
    found = (re.fullmatch(r"([^_]+)_(\d{1,9})\.json", name) for name in sorted(os.listdir(folder)))
    return {one.group(1): int(one.group(2)) for one in found if one}


def of(detector, last_token, model_config):
    """Returns (category numbers by token as bytes, last token that counts), or None if the model is unknown. A model is
    recognised by its name, and by an answer that ends with one of its own tokens."""
    name = _known_name(model_config, detector.mtype2token)
    ends = detector.mtype2token[name].get("eos") if name is not None else None
    if last_token not in (ends if isinstance(ends, list) else [ends]):
        return None
    last = detector.mtype2vocab.get(name)
    if last is None:
        return None
    path = os.path.join(detector.tk2cat_path, "%s_%d.json" % (name, last))
    status = os.stat(path)
    return _categories(path, status.st_mtime_ns, status.st_size), last


def _known_name(model_config, known):
    name = model_config.get("model_name", "") if isinstance(model_config, dict) else model_config
    if not isinstance(name, str):
        return None
    plain = _plain(name)
    return next((one for one in known if _plain(one) in plain or plain in _plain(one)), None)


def _plain(name):
    return re.sub(r"[-_.\s]", "", name.lower())


@functools.lru_cache(8)
def _categories(path, _time, _size):
    """Read once for each version of the file."""
    numbers = dict(_NUMBERS)
    by_token = {}
    for token, category in _read(path).items():
        if not token.isdecimal() or int(token) >= _MOST_TOKENS or not isinstance(category, str):
            raise ValueError("%s: %.40r is not a token with a category" % (path, token))
        by_token[int(token)] = numbers.setdefault(category, len(numbers) + 1)
    if len(numbers) > 65535:
        raise ValueError("%s: more than 65535 categories" % path)
    table = array.array("H", bytes(2 * (max(by_token, default=-1) + 1)))
    for token, number in by_token.items():
        table[token] = number
    return table.tobytes()


def _read(path):
    with open(path, encoding="utf-8") as file:
        try:
            value = json.load(file)
        except ValueError as error:
            raise ValueError("%s: %s" % (path, error)) from None
    if not isinstance(value, dict):
        raise ValueError("%s: an object is expected" % path)
    return value
