"""Relative position representations (Shaw et al. 2018, arXiv 1803.02155)."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Callable, Optional

import torch
from torch import Tensor, nn

from .places import distances
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack


class RelativePosition(AttentionPosition):
    """One layer's vectors of distances.

    Args:
        table: (R, D), one row for each distance, shared by the heads
        rows: (B or 1, T) and (B or 1, S) places -> (B or 1, T, S) rows of the table; shared by
            the layers of a pass
    """

    def __init__(self, table: Tensor, rows: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.table = table
        self.rows = rows

    def bias(self, q: Tensor, query_places: Tensor, key_places: Tensor) -> Tensor:
        """(B, H, T, S): q_i a_ij / sqrt(D), the second term of eq. 5."""
        # One product with all R rows, of which each key takes its own: no vector for each pair.
        products = q @ (self.table * q.size(-1) ** -0.5).t()
        rows = self.rows(query_places, key_places).unsqueeze(1)
        return products.gather(-1, rows.expand(*q.shape[:3], -1))


class Relative(PositionScheme):
    """Adds to each key a trained vector a_(j - i) of its distance from the query (eq. 4).

    Distances are clipped to +-clip. The vectors are the paper's a^K; its a^V, with which it did not
    translate better (section 4.3), are not there. In the decoder no key stands after its query, so
    its tables have no rows for that, and a key that does (under `full_context_alignment`) counts
    as distance 0.

    Args:
        causal: no key stands after its query
        head_dim: width of a head
        clip: the longest distance with a vector of its own, at least 1
    """

    needs_scores = True

    def __init__(self, num_layers: int, causal: bool, head_dim: int, clip: int) -> None:
        super().__init__(num_layers)
        self.lowest, self.highest = -clip, 0 if causal else clip
        rows = self.highest - self.lowest + 1
        self.layers = nn.ParameterList(
            nn.init.xavier_uniform_(torch.empty(rows, head_dim)) for _ in range(num_layers)
        )

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "Relative":
        if config.relative_clip < 1:
            raise ValueError(f"`relative_clip` must be at least 1, but is {config.relative_clip}.")
        causal = stack.name == "decoder"
        return cls(stack.num_layers, causal, stack.head_dim, config.relative_clip)

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        return {"relative_clip": config.relative_clip}

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        rows = cache(self.rows)  # kept for this pass, by the identity of the places
        return [LayerPositions(RelativePosition(table, rows)) for table in self.layers]

    def rows(self, query_places: Tensor, key_places: Tensor) -> Tensor:
        """(B or 1, T) and (B or 1, S) places -> (B or 1, T, S), the row of each distance."""
        clipped = distances(query_places, key_places).clamp(self.lowest, self.highest)
        return clipped - self.lowest
