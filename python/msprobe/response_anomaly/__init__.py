# SPDX-License-Identifier: Apache-2.0
"""Detects anomalous answers of a language model: rare characters, garbled text, repetition."""

from __future__ import annotations

import os
from typing import Any, List, Sequence

from .detector import ILLDetector

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def analyze_output_anomaly(topk_logprobs: Sequence[Any], tokens: Sequence[Any],
                           model_configs: Sequence[Any]) -> List[List[Any]]:
    """[[is it anomalous, kind], ...] for answers, each given as a list of {token: logprob}, its tokens, and the
    model's name."""
    files = [os.path.join(_FOLDER, *name) for name in (("configs", "config.yaml"), ("configs", "mtype_config.json"),
                                                        ("token2category",))]
    return ILLDetector(*files).run(topk_logprobs, tokens, model_configs)
