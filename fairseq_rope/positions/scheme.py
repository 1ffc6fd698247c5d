"""The contract between a position scheme and the rest of the model.

A scheme may act at four points, and does nothing at those it does not name:

    PositionScheme.embed         on the embeddings, once, before the first layer
    AttentionPosition.query,     on a layer's projected queries, keys and values
        .key, .value
    AttentionPosition.rotate     where the attention kernel's equation wants the rotation
    AttentionPosition.bias       added to the attention scores
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from torch import Tensor, nn


class Stack(NamedTuple):
    """What a scheme may know of the encoder or decoder it serves."""

    name: str  # "encoder" or "decoder"
    embed_dim: int
    num_heads: int
    num_layers: int
    padding_idx: int
    max_positions: int

    @property
    def head_dim(self) -> int:
        return self.embed_dim // self.num_heads


class AttentionPosition:
    """What one attention layer sees of the places of one sequence, for the length of one pass.

    Shapes: B batch or 1, H heads, T tokens, D width of a head.
    """

    def query(self, q: Tensor) -> Tensor:
        """(B, H, T, D) projected queries -> the same shape."""
        return q

    def key(self, k: Tensor) -> Tensor:
        """(B, H, T, D) projected keys -> the same shape."""
        return k

    def value(self, v: Tensor) -> Tensor:
        """(B, H, T, D) projected values -> the same shape."""
        return v

    def rotate(self, x: Tensor) -> Tensor:
        """(B, H, T, D) queries or keys -> the same shape; called by the kernel, once per token."""
        return x

    def bias(self, q: Tensor, query_places: Tensor, key_places: Tensor) -> Optional[Tensor]:
        """A term that is added to the scores q k / sqrt(D).

        Args:
            q: (B, H, T, D) queries, before their rotation
            query_places, key_places: (B or 1, T) and (B or 1, S)

        Returns:
            broadcastable to (B, H, T, S), or None
        """
        return None


NO_POSITION = AttentionPosition()


class LayerPositions(NamedTuple):
    """What the attentions of one layer see of places."""

    own: AttentionPosition = NO_POSITION  # self-attention
    target: AttentionPosition = NO_POSITION  # the queries of the attention to the source
    source: AttentionPosition = NO_POSITION  # its keys and values


class PositionScheme(nn.Module):
    """How one stack of layers knows word order. This base class is the scheme "none"."""

    changeable: frozenset[str] = frozenset()
    """Those of the settings with which trained weights still work when they are changed."""

    needs_scores = False
    """It acts on the score of a query and a key, which not every attention kernel computes."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "PositionScheme":
        """Make the scheme from the model's options.

        Args:
            config: any object with the options as attributes (RoFormerConfig in training)

        Raises:
            ValueError: options that do not fit each other; names option, value and remedy
        """
        return cls(stack.num_layers)

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        """The scheme's options, by name, as every checkpoint stores them."""
        return {}

    @property
    def max_positions(self) -> Optional[int]:
        """The longest sequence in tokens that the scheme can number; None for no limit."""
        return None

    def embed(self, x: Tensor, places: Tensor) -> Tensor:
        """(B, T, embed_dim) scaled embeddings -> the same shape."""
        return x

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        """What each layer sees of the places; called once per pass.

        Args:
            places: (B or 1, T), of the tokens that are computed
            source_places: in the decoder, (B or 1, S) places of the source tokens whose keys are
                computed; None where they are cached
        """
        return [LayerPositions()] * self.num_layers
