"""The contract of an attention kernel: what turns queries, keys and values into an output."""

from typing import Any, NamedTuple, Optional

from torch import Tensor, nn

from ..positions.scheme import AttentionPosition
from .mask import AttentionMask

State = dict[str, Any]


class KernelOutput(NamedTuple):
    values: Tensor  # (B, H, T, D)
    state: State  # what the next step of cached decoding needs
    weights: Optional[Tensor] = None  # (B, H, T, S), only if asked for


class AttentionKernel(nn.Module):
    """Computes attention, and decides where the rotation stands in its equation.

    A kernel refuses by name what it cannot do.
    """

    has_scores = True
    """It computes a score for each query and key, to which a position scheme can add."""

    @classmethod
    def build(cls, config: Any, head_dim: int) -> "AttentionKernel":
        """Make the kernel of one layer from the model's options.

        Args:
            config: any object with the options as attributes (RoFormerConfig in training)
            head_dim: width of a head
        """
        return cls()

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        """The kernel's options, by name, as every checkpoint stores them."""
        return {}

    def forward(
        self,
        q: Tensor,
        k: Optional[Tensor],
        v: Optional[Tensor],
        query_position: AttentionPosition,
        key_position: AttentionPosition,
        mask: AttentionMask,
        state: State,
        dropout: float = 0.0,
        need_weights: bool = False,
    ) -> KernelOutput:
        """Attend from T queries to all S keys, the remembered ones included.

        Args:
            q: (B, H, T, D)
            k, v: (B, H, N, D), what is new in this step; None where the state holds every key
                (the source in cached decoding). Keys may have fewer rows than queries: B/n rows
                serve n consecutive rows of queries each, the hypotheses of one sentence.
            query_position, key_position: what rotates q and the new k
            mask: for T queries and S keys, with the rows of the keys
            state: the previous step's, or {} at the first
            dropout: probability of dropping an attention weight
            need_weights: return the attention weights too
        """
        raise NotImplementedError

    def length(self, state: State) -> int:
        """How many tokens a state remembers."""
        raise NotImplementedError

    def reorder(self, state: State, rows: Tensor) -> State:
        """The state of a batch whose row i is row rows[i] of the old one."""
        raise NotImplementedError


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """(B, T, H * D) -> (B, H, T, D), a view."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, T, D) -> (B, T, H * D)."""
    return x.transpose(1, 2).flatten(2)
