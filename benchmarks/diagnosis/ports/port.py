# SPDX-License-Identifier: Apache-2.0
"""Code that all ports share: the pair of implementations, the mistakes of the second one, and weights that show them."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Wrong:
    """One mistake in a port. The code asks `wrong(name, layer)` and carries `# fault: name` on the line of the call
    that the mistake makes wrong first; where something is missing, on the calls before and after it. Such a line runs
    once per layer, or it carries `# fault, once: name`.

    `layer`: the only one with the mistake, where not all have it. `layers`: how many layers run the line, if not all of
    the model. `backward`: the loss is right, the gradients are not."""

    name: str
    layer: int | None = None
    layers: int | None = None
    backward: bool = False

    def __call__(self, name, layer=None):
        return name == self.name and (layer is None or self.layer in (None, layer))


RIGHT = Wrong("")


class Port:
    """A model that exists twice: `reference` (golden) and `port` (target), which takes over the weights."""

    name = ""
    set_name = "ports"
    dtype = "float32"
    held_out = False
    layers = 2
    trains = True  # else forward only, without autograd
    seed = 71
    wrongs = ()

    def reference(self):
        raise NotImplementedError

    def port(self, weights, wrong):
        """The port with the reference's weights: `weights` is a state dict."""
        raise NotImplementedError

    def batch(self, generator):
        raise NotImplementedError

    def reference_loss(self, model, batch):
        return model(**batch).loss

    def port_loss(self, port, batch):
        raise NotImplementedError

    def pair(self, wrong=None):
        """The reference (without `wrong`), or the port."""
        torch.manual_seed(self.seed)
        reference = spread(self.reference()).to(getattr(torch, self.dtype)).train(self.trains)
        if wrong is None:
            return reference
        with torch.no_grad():
            return self.port(reference.state_dict(), wrong)


def spread(model):
    """Weights as after some training: no bias is zero, no two norms are equal, no part is too small to matter."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape)
            if parameter.dim() < 2:
                parameter.add_(0.15 * noise)
            elif "emb" in name or "wte" in name or "wpe" in name or "shared" in name:
                parameter.copy_(0.1 * noise)
            else:
                parameter.copy_(noise / math.sqrt(parameter[0].numel()))
    return model


def tokens(generator, words, length, batch=2):
    """Text as models of the library take it: the labels are not shifted yet."""
    text = torch.randint(1, words, (batch, length), generator=generator)
    return {"input_ids": text, "labels": text}


def below(weights, prefix):
    """The weights of one part, with the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def parameter(tensor):
    return torch.nn.Parameter(tensor.detach().clone().contiguous())


def load(module, weights):
    """Puts tensors into the parameters that have their names; none may be missing."""
    own = dict(module.named_parameters())
    if set(own) != set(weights):
        raise LookupError(f"of the parameters, {sorted(set(own) ^ set(weights))} are on one side only")
    for name, parameter in own.items():
        if parameter.shape != weights[name].shape:
            raise LookupError(f"{name}: {tuple(parameter.shape)}, not {tuple(weights[name].shape)}")
        parameter.data = weights[name].detach().clone().contiguous()
    return module
