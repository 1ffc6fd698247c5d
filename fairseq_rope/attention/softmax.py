"""Scaled dot-product attention with softmax (Vaswani et al. 2017, eq. 1; RoFormer eq. 16)."""

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from ..positions.scheme import AttentionPosition
from .kernel import AttentionKernel, KernelOutput, State
from .mask import AttentionMask


class SoftmaxKernel(AttentionKernel):
    """softmax(rotate(q) rotate(k)^T / sqrt(D) + bias) v, by torch's fused kernels.

    Keys are remembered rotated, so each token is rotated once however many steps follow.
    """

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
        bias = query_position.bias(q, mask.query_places, mask.key_places)
        q = query_position.rotate(q)
        rotated = None if k is None else key_position.rotate(k)
        k, v = (
            _remembered(state, name, new)
            for name, new in (("prev_key", rotated), ("prev_value", v))
        )
        state = {"prev_key": k, "prev_value": v}
        hypotheses = q.size(0) // k.size(0)
        if hypotheses > 1:
            if bias is not None:
                raise ValueError("a score bias cannot be used where hypotheses share their keys.")
            q = _fold(q, hypotheses)
        if need_weights:
            values, weights = _attend_with_weights(
                q, k, v, _added_to_scores(bias, mask, q), dropout
            )
            return KernelOutput(_unfold(values, hypotheses), state, _unfold(weights, hypotheses))
        triangle = mask.is_triangle and bias is None
        added = None if triangle else _added_to_scores(bias, mask, q)
        values = F.scaled_dot_product_attention(q, k, v, added, dropout, is_causal=triangle)
        return KernelOutput(_unfold(values, hypotheses), state)

    def length(self, state: State) -> int:
        return state["prev_key"].size(2) if state else 0

    def reorder(self, state: State, rows: Tensor) -> State:
        # Noted only: the next step takes the rows as it copies its memory in any case.
        noted = state.get("rows")
        return {**state, "rows": rows if noted is None else noted[rows]}


def _remembered(state: State, name: str, new: Optional[Tensor]) -> Tensor:
    """What a state holds, (A, H, S, D), its rows in their new order, then (B, H, N, D) new."""
    past, rows = state.get(name), state.get("rows")
    if past is None:
        assert new is not None, "a first step brings its keys and values"
        return new
    if new is None:
        return past if rows is None else past[rows]
    if rows is None or past.requires_grad:
        return torch.cat((past if rows is None else past[rows], new), dim=2)
    length = past.size(2)
    grown = new.new_empty(new.size(0), new.size(1), length + new.size(2), new.size(3))
    torch.index_select(past, 0, rows, out=grown[:, :, :length])
    grown[:, :, length:] = new
    return grown


def _fold(x: Tensor, hypotheses: int) -> Tensor:
    """(B * n, H, T, D) -> (B, H, n * T, D): the hypotheses of a sentence as so many queries."""
    return x.unflatten(0, (-1, hypotheses)).transpose(1, 2).flatten(2, 3)


def _unfold(x: Tensor, hypotheses: int) -> Tensor:
    """(B, H, n * T, D) -> (B * n, H, T, D)."""
    return x.unflatten(2, (hypotheses, -1)).transpose(1, 2).flatten(0, 1) if hypotheses > 1 else x


def _added_to_scores(bias: Optional[Tensor], mask: AttentionMask, q: Tensor) -> Optional[Tensor]:
    """The bias with -inf where a query may not look; without a bias, the bool mask."""
    if bias is None or mask.visible is None:
        return mask.visible if bias is None else bias.to(q.dtype)
    return bias.to(q.dtype).masked_fill(~mask.visible, float("-inf"))


def _attend_with_weights(
    q: Tensor, k: Tensor, v: Tensor, added: Optional[Tensor], dropout: float
) -> tuple[Tensor, Tensor]:
    """The same equation step by step, for those who want to see the (B, H, T, S) weights."""
    scores = (q * q.size(-1) ** -0.5) @ k.transpose(-2, -1)
    if added is not None and added.dtype == torch.bool:
        scores = scores.masked_fill(~added, float("-inf"))
    elif added is not None:
        scores = scores + added
    weights = torch.softmax(scores.float(), dim=-1)
    return F.dropout(weights, dropout).to(v.dtype) @ v, weights
