# SPDX-License-Identifier: Apache-2.0
"""Gradients that are lost or taken of something else than what was computed."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from planting import Where
from public.bug import WIDTH, Bug, reported


@reported("openai/guided-diffusion#167", "code", Where("blocks.0.feed.2", "dropout", 1),
          Where("blocks.1.feed.2", "dropout", 1))
class OtherMask(Bug):
    """A block that is computed again for its gradients draws another mask of dropout."""

    def feed(self):
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.2), nn.Linear(WIDTH, WIDTH))

    def build(self):
        model = super().build()
        for block in model.blocks:
            inner = block.forward
            block.forward = lambda x, hidden, inner=inner: Recomputed.apply(inner, self.wrong, x, hidden)
        return model


class Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, block, wrong, x, hidden):
        ctx.block, ctx.seed = block, None if wrong else torch.get_rng_state()
        ctx.save_for_backward(x, hidden)
        return block(x, hidden)

    @staticmethod
    def backward(ctx, gradient):
        x, hidden = ctx.saved_tensors
        x = x.detach().requires_grad_()
        with torch.enable_grad(), torch.random.fork_rng():
            if ctx.seed is not None:
                torch.set_rng_state(ctx.seed)
            torch.autograd.backward(ctx.block(x, hidden), gradient)
        return None, None, x.grad, None


@reported("huggingface/transformers#21381", "code", Where("blocks.0.norm1", "layer_norm"), Where("blocks.0", None),
          Where("blocks.0.norm1", "*grad*"), Where("blocks.0", "*grad*"), held_out=True)
class FrozenByCheckpoint(Bug):
    """No input of a checkpoint needs gradients, so that its parameters get none."""

    def build(self):
        model = super().build()
        model.tokens.requires_grad_(False)
        model.places.requires_grad_(False)
        inner = model.blocks[0].forward
        model.blocks[0].forward = lambda x, hidden: checkpoint(inner, x, hidden, use_reentrant=self.wrong)
        return model
