"""Attention from the target to the source."""

from typing import Optional

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from ..positions.scheme import AttentionPosition
from .kernel import AttentionKernel, merge_heads, split_heads
from .mask import AttentionMask
from .self_attention import IncrementalState, active_dropout


class CrossAttention(MultiheadAttention):
    """project -> position -> kernel -> output, with keys and values from the source.

    In cached decoding the source is projected (and rotated) once per sentence, and stays one row
    per sentence however many hypotheses the beam holds.

    Args:
        embed_dim: width of the decoder
        num_heads: heads of embed_dim / num_heads each
        source_dim: width of the encoder
        kernel: what computes attention
        dropout: probability of dropping an attention weight
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        source_dim: int,
        kernel: AttentionKernel,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(
            embed_dim,
            num_heads,
            kdim=source_dim,
            vdim=source_dim,
            dropout=dropout,
            encoder_decoder_attention=True,
        )
        self.kernel = kernel

    def forward(
        self,
        x: Tensor,
        source: Tensor,
        query_position: AttentionPosition,
        key_position: AttentionPosition,
        mask: AttentionMask,
        incremental_state: IncrementalState = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """Attend from the target to the source.

        Args:
            x: (B, T, C) target
            source: (B/n, S, source_dim) encoder output; n consecutive rows of x share a row
            query_position, key_position: of the target and of the source
            mask: which source tokens can be seen

        Returns:
            (B, T, C), and the (B, H, T, S) weights if asked for
        """
        q = query_position.query(split_heads(self.q_proj(x), self.num_heads))
        k = v = None
        cache = self._get_input_buffer(incremental_state)
        if not cache:
            k = key_position.key(split_heads(self.k_proj(source), self.num_heads))
            v = key_position.value(split_heads(self.v_proj(source), self.num_heads))
            sentences = source.size(0)
            cache = {"sentences": sentences, "hypotheses": x.size(0) // sentences, "kernel": {}}
        out = self.kernel(
            q,
            k,
            v,
            query_position,
            key_position,
            mask,
            cache["kernel"],
            active_dropout(self),
            need_weights,
        )
        if incremental_state is not None:
            self._set_input_buffer(incremental_state, {**cache, "kernel": out.state})
        return self.out_proj(merge_heads(out.values)), out.weights

    def hypotheses(self, incremental_state: IncrementalState) -> Optional[int]:
        """How many rows of the target share a cached row of the source; None before any step."""
        return self._get_input_buffer(incremental_state).get("hypotheses")

    def reorder_incremental_state(
        self, incremental_state: IncrementalState, new_order: Tensor
    ) -> IncrementalState:
        """Follow the rows of the target, which in beam search leave a whole sentence at a time.

        Args:
            new_order: for each row of the target from now on, the row it was until now
        """
        cache = self._get_input_buffer(incremental_state)
        if not cache:
            return incremental_state
        hypotheses = cache["hypotheses"]
        sentences = new_order // hypotheses
        stay = torch.arange(cache["sentences"], device=new_order.device)
        if torch.equal(sentences, stay.repeat_interleave(hypotheses)):
            return incremental_state
        if torch.equal(sentences, sentences[::hypotheses].repeat_interleave(hypotheses)):
            sentences = sentences[::hypotheses]
        else:
            hypotheses = 1  # the rows of a sentence part: each gets a source of its own
        kernel = self.kernel.reorder(cache["kernel"], sentences)
        cache = {"sentences": sentences.numel(), "hypotheses": hypotheses, "kernel": kernel}
        self._set_input_buffer(incremental_state, cache)
        return incremental_state
