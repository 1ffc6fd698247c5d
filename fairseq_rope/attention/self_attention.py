"""Self-attention with positions and kernel as arguments."""

from typing import Any, Optional

from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..positions.scheme import AttentionPosition
from .kernel import AttentionKernel, merge_heads, split_heads
from .mask import AttentionMask

IncrementalState = Optional[dict[str, dict[str, Any]]]


class SelfAttention(MultiheadAttention):
    """project -> position -> kernel -> output, on (batch, time, channel).

    Parameters, their initialisation and the cache are fairseq's; its forward pass is not, since
    nothing can be put between its projection and its dot product.

    Args:
        embed_dim: width of the layer
        num_heads: heads of embed_dim / num_heads each
        kernel: what computes attention
        dropout: probability of dropping an attention weight
    """

    def __init__(
        self, embed_dim: int, num_heads: int, kernel: AttentionKernel, dropout: float = 0.0
    ) -> None:
        super().__init__(embed_dim, num_heads, dropout=dropout, self_attention=True)
        self.kernel = kernel

    def forward(
        self,
        x: Tensor,
        position: AttentionPosition,
        mask: AttentionMask,
        incremental_state: IncrementalState = None,
    ) -> Tensor:
        """(B, T, C) new tokens -> (B, T, C). With a state, its earlier tokens are seen too."""
        q = position.query(split_heads(self.q_proj(x), self.num_heads))
        k = position.key(split_heads(self.k_proj(x), self.num_heads))
        v = position.value(split_heads(self.v_proj(x), self.num_heads))
        state = self._get_input_buffer(incremental_state)
        out = self.kernel(q, k, v, position, position, mask, state, active_dropout(self))
        if incremental_state is not None:
            self._set_input_buffer(incremental_state, out.state)
        return self.out_proj(merge_heads(out.values))

    def reorder_incremental_state(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> IncrementalState:
        """Follow the rows of the target: row i goes on from row new_order[i]."""
        state = self._get_input_buffer(incremental_state)
        if state:
            self._set_input_buffer(incremental_state, self.kernel.reorder(state, new_order))
        return incremental_state

    def cached_length(self, incremental_state: IncrementalState) -> int:
        """How many tokens the cache has seen."""
        return self.kernel.length(self._get_input_buffer(incremental_state))


def active_dropout(attention: MultiheadAttention) -> float:
    """The dropout now in force: in training, or always under --retain-dropout."""
    dropout = attention.dropout_module
    return dropout.p if attention.training or dropout.apply_during_inference else 0.0
