# SPDX-License-Identifier: Apache-2.0
"""Features of single layers (recording_l2_features): the sharpness of attention, the stretch of a weight, the routing
of experts."""

import math

import torch

from msprobe.core.common import log
from msprobe.core.monitor.engine import guarded
from msprobe.core.monitor.names import Targets
from msprobe.core.monitor.watch import Calls

from .calls import hook_calls, is_recomputing, modules_of
from .tensors import plain_of

_SEED = 1
_POWER_STEPS = 2
_ROWS_AT_ONCE = 1024  # of attention


def attention(query, key, order):
    """[mean entropy, mean largest weight] of the first head of the first entry of a batch."""
    if query.dim() != 4 or key.dim() != 4 or order not in ("s,b,h,d", "b,s,h,d"):
        return None
    query, key = (one[:, 0, 0] if order == "s,b,h,d" else one[0, :, 0] for one in (query, key))
    count = query.shape[0]
    place = torch.arange(key.shape[0], device=key.device)
    total = torch.zeros(2, dtype=torch.float64, device=key.device)
    for begin in range(0, count, _ROWS_AT_ONCE):
        rows = query[begin:begin + _ROWS_AT_ONCE]
        scores = (rows @ key.transpose(0, 1) / math.sqrt(query.shape[-1])).to(torch.float32)
        # Causal: each position sees the positions before it.
        unseen = place[None, :] > torch.arange(begin, begin + rows.shape[0], device=key.device)[:, None]
        weights = torch.softmax(scores.masked_fill(unseen, -math.inf), dim=-1)
        total += torch.stack([_entropy(weights).sum(), weights.amax(dim=-1).sum(dtype=torch.float64)])
    return list(total / max(count, 1))


def _entropy(weights):
    return torch.special.entr(weights).sum(dim=-1, dtype=torch.float64)


def stretch(weight, start):
    """[stable rank, norm] of a matrix: the norm is estimated by three steps of the power method."""
    weight = weight.to(torch.float32)
    vector = start / start.norm()
    for _ in range(_POWER_STEPS):
        vector = weight.transpose(0, 1) @ (weight @ vector)
        vector = vector / vector.norm()
    norm = (weight @ vector).norm()
    return [weight.norm() / norm, norm]


def router_similarity(weight):
    """Mean cosine between the weights of two experts. There are fewer experts than features."""
    weight = weight.to(torch.float32)
    if weight.shape[0] > weight.shape[1]:
        weight = weight.transpose(0, 1)
    count = weight.shape[0]
    directions = weight / weight.norm(dim=1, keepdim=True)
    cosines = directions @ directions.transpose(0, 1)
    return [(cosines.sum() - cosines.diagonal().sum()) / (count * (count - 1))]


def expert_entropy(logits):
    """Mean entropy of a router's choice for a token."""
    return [_entropy(torch.softmax(logits.to(torch.float32), dim=-1)).mean()]


# ---------------------------------------------------------------------- where they are taken


class _Feature:
    """A feature of a module. Gives a list of 0-d tensors, or None where it has none."""

    suffix = ""
    has_micro_step = False

    def __init__(self, watch, stage, name, module):
        self._watch = watch
        self._calls = Calls(watch.micro_batches[stage])
        self._stage = stage
        self._name = "%s.%s" % (name, self.suffix)
        self._handles = hook_calls(module, self, before=False)

    def after(self, module, args, kwargs, output):
        if not self._watch.is_on(module) or is_recomputing():
            return
        with torch.no_grad():
            values = self.values(module, args, output)
        if values is not None:
            micro_step = self._calls.next() if self.has_micro_step else -1
            series = self._watch.engine.series(self.hook, self._stage, self._name, micro_step)
            self._watch.observer.values(series, torch.stack([value.to(torch.float64) for value in values]))

    def remove(self):
        for handle in self._handles:
            handle.remove()


class _Attention(_Feature):
    hook, suffix, has_micro_step = "attention_hook", "attention", True

    def values(self, module, args, output):
        if len(args) < 2 or not all(isinstance(one, torch.Tensor) for one in args[:2]):
            log.warn_once("monitor: %s has no query and key as its first arguments" % self._name)
            return None
        values = attention(plain_of(args[0]), plain_of(args[1]), self._watch.settings.sa_order)
        if values is None:
            log.warn_once("monitor: the query and key of %s do not have four dimensions in the order of sa_order"
                          % self._name)
        return values


def _matrix(module):
    """The weight of a layer that multiplies."""
    weight = getattr(module, "weight", None)
    if weight is None:
        weight = getattr(module, "wg", None)
    if not isinstance(weight, torch.Tensor) or isinstance(module, torch.nn.Embedding) or weight.dim() != 2:
        return None
    weight = plain_of(weight.detach())
    return weight if weight.dim() == 2 and weight.numel() > 0 else None


class _Linear(_Feature):
    hook, suffix = "linear_hook", "linear"

    def values(self, module, args, output):
        weight = _matrix(module)
        if weight is None:
            return None
        generator = torch.Generator()  # the training's own generator stays unchanged
        generator.manual_seed(_SEED)
        start = torch.randn(weight.shape[1], generator=generator)
        return stretch(weight, start.to(weight.device))


class _RouterWeight(_Feature):
    hook, suffix = "moe_router_weight_hook", "moe_router"

    def values(self, module, args, output):
        weight = _matrix(module)
        return None if weight is None or min(weight.shape) < 2 else router_similarity(weight)


class _RouterLogit(_Feature):
    hook, suffix, has_micro_step = "moe_router_logit_hook", "moe_router", True

    def values(self, module, args, output):
        tensors = [one for one in (output if isinstance(output, (list, tuple)) else [output])
                   if isinstance(one, torch.Tensor)]
        return expert_entropy(plain_of(tensors[0])) if tensors else None


_FEATURES = (_Attention, _Linear, _RouterWeight, _RouterLogit)


class Features:
    def __init__(self, watch):
        self._watch = watch
        self._features = []

    def attach(self, models):
        settings = self._watch.settings
        if not settings.recording_l2_features:
            return
        for kind in _FEATURES:
            names = settings.l2_targets.get(kind.hook)
            if names is None or (not names and kind is not _Linear):
                continue
            targets = Targets(names, settings.squash_name)
            for stage, name, module in modules_of(models):
                if targets.has_module(stage, name) and (kind is not _Linear or _matrix(module) is not None):
                    feature = guarded("hooking a module", kind, self._watch, stage, name, module)
                    self._features += [feature] if feature is not None else []

    def step_ends(self):
        """Nothing is kept between steps."""

    def remove(self):
        for feature in self._features:
            feature.remove()
        self._features = []
