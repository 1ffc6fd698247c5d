"""Sinusoidal positions (Vaswani et al. 2017, section 3.5), numbered as fairseq numbers them."""

import math
from typing import Any

import torch
from torch import Tensor

from .scheme import PositionScheme, Stack


class Sinusoidal(PositionScheme):
    """Adds sines and cosines of the place to the embeddings; no parameters, no length limit.

    The values are those of fairseq's SinusoidalPositionalEmbedding: all sines first, then all
    cosines, and the first token at place padding_idx + 1.
    """

    def __init__(self, num_layers: int, padding_idx: int) -> None:
        super().__init__(num_layers)
        self.offset = padding_idx + 1

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "Sinusoidal":
        if stack.embed_dim < 4:
            raise ValueError(
                f"sinusoidal positions need `{stack.name}_embed_dim` >= 4, "
                f"but it is {stack.embed_dim}."
            )
        return cls(stack.num_layers, stack.padding_idx)

    def embed(self, x: Tensor, places: Tensor) -> Tensor:
        half = x.size(-1) // 2
        steps = torch.arange(half, dtype=torch.float, device=x.device)
        frequencies = torch.exp(steps * -(math.log(10000) / (half - 1)))
        angles = (places + self.offset).float().unsqueeze(-1) * frequencies
        table = torch.cat((angles.sin(), angles.cos()), dim=-1)
        return x + torch.nn.functional.pad(table, (0, x.size(-1) % 2)).to(x.dtype)
