# SPDX-License-Identifier: Apache-2.0
"""Ports: models in two implementations with equal weights, and typical mistakes in the second implementation."""

import transformers

from ports.bert import BertPort
from ports.dit import DitPort
from ports.gemma2 import Gemma2Port
from ports.gpt2 import Gpt2Port
from ports.large import LargeGpt2Port, LargeLlamaPort
from ports.llama import LlamaPort
from ports.lstm import LstmPort
from ports.mamba import MambaPort
from ports.mixtral import MixtralPort
from ports.phi3 import Phi3Port
from ports.qwen3_moe import Qwen3MoePort
from ports.resnet import ResNetPort
from ports.serving import ServingPort
from ports.t5 import T5Port
from ports.unet import UNetPort
from ports.vit import VitPort

transformers.logging.set_verbosity_error()  # it warns of kernels that this machine does not have

PORTS = {port.name: port for port in (
    LlamaPort, Gpt2Port, MixtralPort, ResNetPort, VitPort, LstmPort, Gemma2Port, T5Port, ServingPort, BertPort,
    MambaPort, Phi3Port, Qwen3MoePort, DitPort, UNetPort,
    LargeLlamaPort, LargeGpt2Port)}
