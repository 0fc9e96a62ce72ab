# SPDX-License-Identifier: Apache-2.0
"""The detector of anomalous answers: reads thresholds and tables from files, and passes the generated answers to the
native part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence

from msprobe import _native
from msprobe.core.common import log

from . import tables, thresholds


@dataclass
class DetectionResult:
    is_ill: bool = False
    ill_type: int = 0  # 1: rare characters, 2: garbled, 3: repetition, 4: NaN or Inf among the logprobs


class ILLDetector:
    """Each threshold is an attribute that may be set at any time. Nothing is kept between answers, so threads can
    share a detector.

    Args:
        config_path: a YAML file with the thresholds.
        mtype_path: a JSON file with the names of the models that have tables, and their end tokens.
        tk2cat_path: the folder with these tables.

    Raises OSError if a file cannot be read, ValueError if a threshold is invalid.
    """

    def __init__(self, config_path: str = "./configs/config.yaml", mtype_path: str = "./configs/mtype_config.json",
                 tk2cat_path: str = "./token2category/") -> None:
        vars(self).update(thresholds.read(config_path))
        self.topk: Optional[int] = None  # how many candidates of each token count: None for as many as all have
        self.mtype2token = tables.read_models(mtype_path)
        self.mtype2vocab = tables.find_tables(tk2cat_path)
        self.tk2cat_path = tk2cat_path

    def run(self, topk_logprobs: Sequence[Any], tokens: Sequence[Any],
            model_configs: Optional[Sequence[Any]] = None) -> List[List[Any]]:
        """Returns [[is_ill, ill_type], ...], one pair for each answer. topk_logprobs, tokens and model_configs are those of
        analyze_output_anomaly(). Raises IndexError if there are fewer logprobs or models than answers."""
        count = len(tokens)
        configs: Sequence[Any] = [None] * count if model_configs is None else model_configs
        for name, given in (("topk_logprobs", topk_logprobs), ("model_configs", configs)):
            if len(given) < count:
                raise IndexError("%s has %d items, but tokens has %d: one per answer is needed" % (name, len(given), count))
        results = [self.detector(topk_logprobs[at], tokens[at], configs[at]) for at in range(count)]
        return [[one.is_ill, one.ill_type] for one in results]

    def detector(self, topk_logprobs: Any, tokens: Any, model_config: Any = None) -> DetectionResult:
        """Returns the result for one answer: an object with `is_ill` and `ill_type`.

        Args:
            topk_logprobs: a dict {token: logprob} for each position (natural logarithms).
            tokens: the tokens of the answer.
            model_config: the name of the model.

        It raises nothing: an answer that cannot be judged counts as not anomalous, with a warning, so that serving continues.
        """
        try:
            if topk_logprobs is None or tokens is None or len(topk_logprobs) == 0 or len(tokens) == 0:
                return DetectionResult()
            kind = self._judge(topk_logprobs, tokens, tables.of(self, tokens[-1], model_config))
        except Exception as error:
            text = "response_anomaly: an answer is not judged: %s" % error
            log.warn_once(text, "response_anomaly " + type(error).__name__)
            return DetectionResult()
        return DetectionResult(kind != 0, kind)

    def _judge(self, topk_logprobs: Any, tokens: Any, table: Any) -> Any:
        categories, last = (None, 0) if table is None else table
        settings = tuple(getattr(self, name) for name in thresholds.NAMES)
        try:
            return _native.judge_response(topk_logprobs, tokens, categories, last, self.topk or 0, settings)
        except (TypeError, OverflowError):
            # Tokens need not be numbers: it only matters which of them are equal.
            numbers: Dict[Any, int] = {}
            tokens = [numbers.setdefault(token, len(numbers)) for token in tokens]
            return _native.judge_response(topk_logprobs, tokens, categories, last, self.topk or 0, settings)
