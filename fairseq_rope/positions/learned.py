"""Learned absolute positions, numbered as fairseq numbers them."""

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .scheme import PositionScheme, Stack


class Learned(PositionScheme):
    """Adds one trained vector per place to the embeddings.

    The weight is that of fairseq's LearnedPositionalEmbedding, (max_positions + padding_idx + 1,
    embed_dim), so that its checkpoints fit.
    """

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack.num_layers)
        self.stack = stack
        rows = stack.max_positions + stack.padding_idx + 1
        self.weight = nn.Parameter(torch.empty(rows, stack.embed_dim))
        nn.init.normal_(self.weight, mean=0, std=stack.embed_dim**-0.5)
        nn.init.constant_(self.weight[stack.padding_idx], 0)

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "Learned":
        return cls(stack)

    @property
    def max_positions(self) -> Optional[int]:
        return self.stack.max_positions

    def embed(self, x: Tensor, places: Tensor) -> Tensor:
        """Raises: ValueError for a place past the table."""
        longest = int(places.max()) + 1 if places.numel() else 0
        if longest > self.stack.max_positions:
            option = f"max_{'source' if self.stack.name == 'encoder' else 'target'}_positions"
            raise ValueError(
                f"a sentence of {longest} tokens is longer than `{option}`="
                f"{self.stack.max_positions} of the learned positions; shorten it, or train with "
                "a larger table or with position=rotary, which has no limit."
            )
        return x + F.embedding(places + self.stack.padding_idx + 1, self.weight)
