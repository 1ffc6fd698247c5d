"""Relative position buckets of T5 (Raffel et al. 2020, arXiv 1910.10683, section 2.1)."""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .places import distances
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack

BUCKETS = 32
FARTHEST = 128  # from this distance on, the last bucket


class T5Position(AttentionPosition):
    """The biases of one pass, shared by all layers.

    Args:
        biases: (H, R), of each head and clipped distance
        rows: (B or 1, T) and (B or 1, S) places -> (B or 1, T, S) numbers of clipped distances
    """

    def __init__(self, biases: Tensor, rows: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.biases = biases
        self.rows = rows

    def bias(self, q: Tensor, query_places: Tensor, key_places: Tensor) -> Tensor:
        # Not kept from layer to layer as the rows are: a layer whose activations are computed
        # twice must do the same operations each time.
        rows = self.rows(query_places, key_places)
        picked = self.biases.index_select(1, rows.flatten())
        return picked.unflatten(1, rows.shape).transpose(0, 1)


class T5(PositionScheme):
    """Adds a trained bias for each head and bucket of distances; one table for all layers.

    T5 itself leaves the 1/sqrt(D) out of its scores. Here the score is q k / sqrt(D) + bias.

    Args:
        bidirectional: keys after the query have half of the buckets; else they count as distance 0
        embed_dim: width of the stack, for the scale at which the table is drawn
    """

    needs_scores = True

    def __init__(
        self, num_layers: int, bidirectional: bool, num_heads: int, embed_dim: int
    ) -> None:
        super().__init__(num_layers)
        self.bidirectional = bidirectional
        self.table = nn.Parameter(torch.empty(BUCKETS, num_heads))
        nn.init.normal_(self.table, mean=0, std=embed_dim**-0.5)

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "T5":
        return cls(stack.num_layers, stack.name == "encoder", stack.num_heads, stack.embed_dim)

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        steps = torch.arange(-FARTHEST, FARTHEST + 1, device=places.device)
        biases = F.embedding(t5_buckets(steps, self.bidirectional), self.table).t()
        rows = cache(self.rows)  # kept for this pass, by the identity of the places
        return [LayerPositions(T5Position(biases, rows))] * self.num_layers

    def rows(self, query_places: Tensor, key_places: Tensor) -> Tensor:
        """(B or 1, T) and (B or 1, S) places -> (B or 1, T, S), from 0 to 2 * FARTHEST."""
        return distances(query_places, key_places).clamp(-FARTHEST, FARTHEST) + FARTHEST


def t5_buckets(steps: Tensor, bidirectional: bool) -> Tensor:
    """The bucket of each distance: near ones have their own, farther ones share (section 2.1).

    Half of the buckets of a side are for its distances 0, 1, 2, ...; in the others distances
    grow by equal factors up to FARTHEST, and the last holds what is farther still.

    Args:
        steps: (...) integers, the place of the key less that of the query
        bidirectional: the second half of the buckets is for keys after the query

    Returns:
        (...) int64, from 0 to BUCKETS - 1
    """
    buckets = BUCKETS // 2 if bidirectional else BUCKETS
    far = steps.abs() if bidirectional else steps.neg().clamp(min=0)
    near = buckets // 2
    factors = (far.clamp(min=near).float() / near).log() / math.log(FARTHEST / near)
    shared = (near + (factors * (buckets - near)).long()).clamp(max=buckets - 1)
    side = steps.gt(0) * buckets if bidirectional else 0
    return torch.where(far < near, far, shared) + side
