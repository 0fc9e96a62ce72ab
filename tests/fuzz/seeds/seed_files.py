# SPDX-License-Identifier: Apache-2.0
"""How seeds are written, and what several kinds of them are made of."""

import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent


def put(target, name, data):
    (HERE / target / name).write_bytes(data)


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data
