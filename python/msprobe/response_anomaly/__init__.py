# SPDX-License-Identifier: Apache-2.0
"""Detects anomalous answers of a language model: rare characters, garbled text, repetition."""

from __future__ import annotations

import os
from typing import Any, List, Sequence

from .detector import ILLDetector

_FOLDER = os.path.dirname(os.path.realpath(__file__))


def analyze_output_anomaly(topk_logprobs: Sequence[Any], tokens: Sequence[Any],
                           model_configs: Sequence[Any]) -> List[List[Any]]:
    """Judges answers of language models with the thresholds and tables of this package.

    Args:
        topk_logprobs: for each answer a list with a dict {token: logprob} for each position (natural logarithms).
        tokens: for each answer the list of its tokens.
        model_configs: for each answer the model's name.

    Returns [[is it anomalous, kind], ...], one pair for each answer. Kinds: 0 none, 1 rare characters, 2 garbled text,
    3 repetition, 4 NaN or Inf among the logprobs.

    Raises IndexError if there are fewer logprobs or models than answers.
    """
    files = [os.path.join(_FOLDER, *name) for name in (("configs", "config.yaml"), ("configs", "mtype_config.json"),
                                                        ("token2category",))]
    return ILLDetector(*files).run(topk_logprobs, tokens, model_configs)
