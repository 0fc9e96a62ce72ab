# SPDX-License-Identifier: Apache-2.0
"""A residual network with bottlenecks: modules against functions on a dictionary of tensors."""

import torch
from torch import nn
from torch.nn import functional as F

from ports.port import Port, Wrong

STAGES = ((24, 1), (32, 2), (48, 2))  # width inside of a bottleneck, and its stride
WIDER = 2


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = WIDER * width
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + self.downsample(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 24, 5, 2, padding=2, bias=False), nn.BatchNorm2d(24), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, padding=1)
        widths = [24] + [WIDER * width for width, _ in STAGES]
        self.stages = nn.Sequential(*(Bottleneck(widths[i], *STAGES[i]) for i in range(len(STAGES))))
        self.fc = nn.Linear(widths[-1], 10)

    def forward(self, images):
        x = self.stages(self.pool(self.stem(images)))
        return self.fc(x.mean(dim=(2, 3)))


class ResNetPort(Port):
    name = "resnet"
    layers = len(STAGES)
    wrongs = (Wrong("stride_in_first"), Wrong("epsilon", layer=1), Wrong("padded_at_the_end"),
              Wrong("relu_before_sum"), Wrong("last_pixel"), Wrong("norms_swapped", layer=2),
              Wrong("unbiased_variance", layer=0))

    def reference(self):
        return ResNet()

    def batch(self, generator):
        return {"images": torch.randn(4, 3, 40, 40, generator=generator),
                "labels": torch.randint(0, 10, (4,), generator=generator)}

    def reference_loss(self, model, batch):
        return nn.CrossEntropyLoss()(model(batch["images"]), batch["labels"])

    def port(self, weights, wrong):
        return FunctionalNet(weights, wrong)

    def port_loss(self, port, batch):
        logprobs = port(batch["images"]).log_softmax(dim=1)
        return -logprobs[torch.arange(len(logprobs)), batch["labels"]].mean()


class FunctionalNet:
    """No modules: tensors by name, as they come from a file."""

    def __init__(self, weights, wrong):
        self.p = {name: value.clone().requires_grad_() for name, value in weights.items()
                  if "running" not in name and "num_batches" not in name}
        self.wrong = wrong

    def parameters(self):
        return list(self.p.values())

    def pointwise(self, x, name, stride=1):
        """A convolution of one pixel is a product of matrices."""
        weight = self.p[name].flatten(1)
        return torch.einsum("nchw,oc->nohw", x[:, :, ::stride, ::stride], weight)

    def norm(self, x, name, eps=1e-5, unbiased=False):
        var, mean = torch.var_mean(x, dim=(0, 2, 3), unbiased=unbiased, keepdim=True)
        scale, shift = self.p[name + ".weight"][:, None, None], self.p[name + ".bias"][:, None, None]
        return (x - mean) / torch.sqrt(var + eps) * scale + shift

    def stem(self, x):
        if self.wrong("padded_at_the_end"):
            x = F.pad(x, (1, 3, 1, 3))  # fault, once: padded_at_the_end
        else:
            x = F.pad(x, (2, 2, 2, 2))
        x = torch.relu(self.norm(F.conv2d(x, self.p["stem.0.weight"], stride=2), "stem.1"))
        return F.max_pool2d(x, 3, 2, 1)

    def bottleneck(self, x, layer):
        at, stride, wrong = f"stages.{layer}.", STAGES[layer][1], self.wrong
        first = stride if wrong("stride_in_first") else 1
        out = self.pointwise(x, at + "conv1.weight", first)  # fault: stride_in_first
        bn1, bn2 = ("bn2", "bn1") if wrong("norms_swapped", layer) else ("bn1", "bn2")
        eps = 1e-3 if wrong("epsilon", layer) else 1e-5
        unbiased = wrong("unbiased_variance", layer)
        out = torch.relu(self.norm(out, at + bn1, eps))  # fault: epsilon, norms_swapped
        out = F.conv2d(out, self.p[at + "conv2.weight"], stride=stride // first, padding=1)
        out = torch.relu(self.norm(out, at + bn2, unbiased=unbiased))  # fault: unbiased_variance
        out = self.norm(self.pointwise(out, at + "conv3.weight"), at + "bn3")
        short = self.norm(self.pointwise(x, at + "downsample.0.weight", stride), at + "downsample.1")
        if wrong("relu_before_sum"):
            return torch.relu(out) + short  # fault: relu_before_sum
        return torch.relu(out + short)

    def __call__(self, images):
        x = self.stem(images)
        for layer in range(len(STAGES)):
            x = self.bottleneck(x, layer)
        if self.wrong("last_pixel"):
            x = x[:, :, -1, -1]
        else:
            x = x.mean(dim=(2, 3))
        weight = self.p["fc.weight"].t()
        return x @ weight + self.p["fc.bias"]  # fault, once: last_pixel
