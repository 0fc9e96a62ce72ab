# SPDX-License-Identifier: Apache-2.0
from . import functional
from .modules import Identity, Linear, Module, Parameter, ReLU
