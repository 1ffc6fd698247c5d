"""Who may look at whom, worked out once per pass and shared by all layers."""

from functools import cached_property
from typing import Optional

import torch
from torch import Tensor


class AttentionMask:
    """The places of queries and keys, and which keys a query may see.

    Args:
        query_places: (B or 1, T) places of the new tokens
        key_places: (B or 1, S) places of all tokens that can be seen; with `causal`, the T new
            ones stand last
        key_padding: (B, S) bool, true at padding; None where no key is padding
        causal: a token sees itself and what stands before it in the sequence
    """

    def __init__(
        self,
        query_places: Tensor,
        key_places: Tensor,
        key_padding: Optional[Tensor] = None,
        causal: bool = False,
    ) -> None:
        self.query_places = query_places
        self.key_places = key_places
        self.key_padding = key_padding
        # A single new token stands last and sees all.
        self.causal = causal and query_places.size(1) > 1

    @property
    def is_triangle(self) -> bool:
        """The mask is the plain lower triangle of T = S tokens, which fused kernels know."""
        square = self.query_places.size(1) == self.key_places.size(1)
        return self.causal and square and self.key_padding is None

    @cached_property
    def visible(self) -> Optional[Tensor]:
        """Bool, broadcast to (B, H, T, S), true where a query may look; None if it may everywhere.

        A query whose every key is hidden sees all of them, so that no row of a softmax is empty:
        such rows belong to padding and nothing reads them.
        """
        visible = None
        if self.key_padding is not None:
            visible = ~self.key_padding[:, None, None, :]
        if self.causal:
            queries, keys = self.query_places.size(1), self.key_places.size(1)
            ones = torch.ones(queries, keys, dtype=torch.bool, device=self.query_places.device)
            triangle = ones.tril(keys - queries)
            visible = triangle if visible is None else visible & triangle
        return visible if visible is None else visible | ~visible.any(dim=-1, keepdim=True)
