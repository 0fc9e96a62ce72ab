# SPDX-License-Identifier: Apache-2.0
"""Bugs in the data before the model."""

import torch
from torch import nn
from torch.nn import functional as F

from planting import Where
from public.bug import Bug, reported

_IMAGES = (Where("0", "conv2d", around=True),)


class Images(Bug):
    def build(self):
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.GELU(), nn.Flatten(), nn.Linear(8 * 36, 5))

    def batch(self, generator):
        return {"images": self.images(generator), "labels": torch.arange(4)}

    def loss(self, model, batch):
        return F.cross_entropy(model(batch["images"]), batch["labels"])


@reported("heuritech/convnets-keras#28", "input", *_IMAGES)
class ChannelOrder(Images):
    """Channels are reversed before the means of red, green and blue are subtracted."""

    def images(self, generator):
        images = 255 * torch.rand(4, 3, 8, 8, generator=generator)
        means = torch.tensor([123.68, 116.779, 103.939])[:, None, None]
        return ((images.flip(1) - means) if self.wrong else (images - means).flip(1)) / 60


@reported("pytorch/pytorch#5059", "input", *_IMAGES, held_out=True)
class WorkerSeed(Images):
    """Workers that load data have the same random state, and so do their augmentations."""

    def images(self, generator):
        images = torch.rand(4, 3, 8, 8, generator=generator)
        seed = int(torch.randint(1000, (), generator=generator))
        for worker in range(2):
            random = torch.Generator().manual_seed(seed if self.wrong else seed + worker)
            images[worker::2] += 0.1 * torch.randn(2, 3, 8, 8, generator=random)
        return images
