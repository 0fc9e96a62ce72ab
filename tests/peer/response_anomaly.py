#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what the Python tool answers to the cases of tests/python/response_cases.py.

usage: PYTHON_OF_THE_PYTHON_TOOL response_anomaly.py > tests/python/response_answers.json
"""

import json
import os
import pathlib
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import response_cases

import msprobe.response_anomaly
from msprobe.response_anomaly.detector import ILLDetector


def main():
    config = os.path.join(os.path.dirname(msprobe.response_anomaly.__file__), "configs", "config.yaml")
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        files = response_cases.write_files(folder, config)
        for name, settings, model, (rows, tokens) in response_cases.all_cases():
            detector = ILLDetector(*files)
            for key, value in response_cases.SETTINGS.get(settings, {}).items():
                setattr(detector, key, value)
            assert name not in answers, name
            answers[name] = detector.run([rows], [tokens], [model])[0][1]
    print("{\n" + ",\n".join(" %s: %d" % (json.dumps(name), kind) for name, kind in answers.items()) + "\n}")


main()
