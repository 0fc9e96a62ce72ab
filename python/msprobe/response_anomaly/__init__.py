# SPDX-License-Identifier: Apache-2.0
"""Detects anomalous answers of a language model: rare characters, garbled text, repetition."""

import os

from .detector import ILLDetector

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def analyze_output_anomaly(topk_logprobs, tokens, model_configs):
    """[[is it anomalous, kind], ...] for answers, each given as a list of {token: logprob}, its tokens, and the
    model's name."""
    files = [os.path.join(_FOLDER, *name) for name in (("configs", "config.yaml"), ("configs", "mtype_config.json"),
                                                        ("token2category",))]
    return ILLDetector(*files).run(topk_logprobs, tokens, model_configs)
