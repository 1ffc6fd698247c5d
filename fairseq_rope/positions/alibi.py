"""Attention with linear biases, ALiBi (Press et al. 2022, arXiv 2108.12409)."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Callable, Optional

import torch
from torch import Tensor

from .places import distances
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack


class AlibiPosition(AttentionPosition):
    """The penalties of one pass, shared by all layers.

    Args:
        penalties: (B or 1, T) and (B or 1, S) places -> (B or 1, H, T, S)
    """

    def __init__(self, penalties: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.penalties = penalties

    def bias(self, q: Tensor, query_places: Tensor, key_places: Tensor) -> Tensor:
        return self.penalties(query_places, key_places)


class Alibi(PositionScheme):
    """Adds -slope * |i - j| to the score of query i and key j (section 3); no parameters.

    The paper's model is a decoder, where keys stand before their query. In the encoder the penalty
    is the same on both sides, so that the score tells how far a key is, not on which side.
    """

    needs_scores = True

    def __init__(self, num_layers: int, num_heads: int) -> None:
        super().__init__(num_layers)
        self.slopes = alibi_slopes(num_heads)

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "Alibi":
        return cls(stack.num_layers, stack.num_heads)

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        # Computed for the first layer and kept for the others of this pass, by the identity of
        # the places.
        return [LayerPositions(AlibiPosition(cache(self.penalties)))] * self.num_layers

    def penalties(self, query_places: Tensor, key_places: Tensor) -> Tensor:
        """(B or 1, T) and (B or 1, S) places -> (B or 1, H, T, S) float32, zero or below."""
        slopes = torch.tensor(self.slopes, device=key_places.device).view(-1, 1, 1)
        return distances(query_places, key_places).abs().unsqueeze(1) * -slopes


def alibi_slopes(num_heads: int) -> list[float]:
    """The slope of each head: for n heads, a power of two, 2 ** (-8 h / n) with h = 1 ... n.

    Other numbers take the slopes of the power of two below, and from those of twice that power
    every other one, the steepest first (the paper's code).
    """
    power = 2 ** (num_heads.bit_length() - 1)
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-8 * (head - 0.5) / power) for head in range(1, power + 1)]
    return slopes + between[: num_heads - power]
