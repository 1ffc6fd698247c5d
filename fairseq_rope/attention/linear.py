"""Linear attention with rotation (RoFormer, arXiv 2104.09864, section 3.3)."""

from itertools import accumulate
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional as F

from ..positions.scheme import AttentionPosition
from .feature_maps import FEATURE_MAPS, FeatureMap
from .kernel import AttentionKernel, KernelOutput, State
from .mask import AttentionMask


class Tokens(NamedTuple):
    """The new tokens, as the two sums of the equation read them: (B, H, T, D) each."""

    rotated_q: Tensor  # R phi(q)
    rotated_k: Tensor  # R phi(k)
    v: Tensor
    q: Tensor  # phi(q)
    k: Tensor  # phi(k)


class Sums(NamedTuple):
    """What a key leaves behind, added up over keys: of constant size."""

    values: Tensor  # (B, H, D, D), sum of R phi(k) v^T
    keys: Tensor  # (B, H, D), sum of phi(k)


class LinearKernel(AttentionKernel):
    """Self-attention in time and memory linear in the length (RoFormer eq. 19; phi: feature map):

        out_m = sum_n (R_m phi(q_m))^T (R_n phi(k_n)) v_n / sum_n phi(q_m)^T phi(k_n)

    The rotation comes after the feature map, so that the numerator depends on distances only, and
    not into the denominator, which so stays positive. Sums are float32 (or the wider type of q).

    Args:
        feature_map: makes the features
        chunk: tokens that a causal pass takes at once: within a chunk each query meets each key,
            before it stand the sums of earlier chunks
    """

    has_scores = False

    def __init__(self, feature_map: FeatureMap, chunk: int = 64) -> None:
        super().__init__()
        self.feature_map = feature_map
        self.chunk = chunk

    @classmethod
    def build(cls, config: Any, head_dim: int) -> "LinearKernel":
        if config.attention_dropout > 0:
            raise ValueError(
                f"`attention_dropout`={config.attention_dropout} drops attention weights, which "
                "`attention`='linear' does not compute; leave it out, or choose attention=softmax."
            )
        return cls(FEATURE_MAPS[str(config.linear_feature_map)](head_dim))

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        return {"linear_feature_map": str(config.linear_feature_map)}

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
        if need_weights or dropout:
            raise ValueError("`attention`='linear' computes no weights to return or to drop.")
        if k is None or v is None or k.shape[:3] != q.shape[:3]:
            raise ValueError("`attention`='linear' is for self-attention: each query has its key.")
        if query_position.bias(q, mask.query_places, mask.key_places) is not None:
            raise ValueError("`attention`='linear' computes no score that a bias can be added to.")
        with torch.autocast(q.device.type, enabled=False):
            tokens = self._tokens(q, k, v, query_position, key_position, mask.key_padding)
            past = _sums_of(state, tokens)
            scan = self._attend_to_earlier if mask.causal else _attend_to_all
            numerator, denominator, sums = scan(tokens, past)
            # A query with no key but padding belongs to padding, and gets zeros. To multiply by the
            # inverse takes fewer passes than to divide, in the gradient most of all.
            values = numerator * denominator.masked_fill(denominator == 0, 1).reciprocal()
        length = self.length(state) + q.size(2)
        return KernelOutput(values.to(v.dtype), {**sums._asdict(), "length": length})

    def length(self, state: State) -> int:
        return state["length"] if state else 0

    def reorder(self, state: State, rows: Tensor) -> State:
        return {**state, **{name: state[name].index_select(0, rows) for name in Sums._fields}}

    def _tokens(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        query_position: AttentionPosition,
        key_position: AttentionPosition,
        key_padding: Optional[Tensor],
    ) -> Tokens:
        q, k = self.feature_map.query(_wide(q)), self.feature_map.key(_wide(k))
        if key_padding is not None:
            # The mask is for all keys, the remembered ones first.
            k = k.masked_fill(key_padding[:, None, -k.size(2) :, None], 0)
        return Tokens(query_position.rotate(q), key_position.rotate(k), _wide(v), q, k)

    def _attend_to_earlier(self, tokens: Tokens, past: Sums) -> tuple[Tensor, Tensor, Sums]:
        """Each token sees itself and what stands before it; as _attend_to_all."""
        length = tokens.q.size(2)
        size = min(self.chunk, length)
        # (B, H, T, D) -> (B, H, N, size, D), filled up with zeros, which add nothing
        rotated_q, rotated_k, v, q, k = (_chunks(x, size) for x in tokens)
        # Within a chunk: each query with the keys up to its own.
        numerator = (rotated_q @ rotated_k.mT).tril_() @ v
        keys = k.cumsum(dim=3)
        # Before it: the sums of the earlier chunks, (B, H, N, D, D) and (B, H, N, D).
        values_before, values = _running_sums(past.values, rotated_k.mT @ v)
        keys_before, key_sum = _running_sums(past.keys, keys[:, :, :, -1])
        numerator += rotated_q @ values_before
        denominator = (q * (keys + keys_before[:, :, :, None])).sum(dim=-1, keepdim=True)
        numerator, denominator = (x.flatten(2, 3)[:, :, :length] for x in (numerator, denominator))
        return numerator, denominator, Sums(values, key_sum)


def _attend_to_all(tokens: Tokens, past: Sums) -> tuple[Tensor, Tensor, Sums]:
    """Each token sees all; the (B, H, T, D) numerator, (B, H, T, 1) denominator, new sums."""
    values = past.values + tokens.rotated_k.mT @ tokens.v
    keys = past.keys + tokens.k.sum(dim=2)
    return tokens.rotated_q @ values, tokens.q @ keys[..., None], Sums(values, keys)


def _running_sums(past: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    """(B, H, ...) and (B, H, N, ...) -> (B, H, N, ...) the sum before each, and that of all.

    On a CPU, forward and backward, a third of the time of torch.cumsum over this dimension.
    """
    sums = list(accumulate(new.unbind(2), initial=past))
    return torch.stack(sums[:-1], dim=2), sums[-1]


def _sums_of(state: State, tokens: Tokens) -> Sums:
    """What a state holds; zeros at the first step."""
    if state:
        return Sums(*(state[name] for name in Sums._fields))
    batch, heads, _, width = tokens.k.shape
    keys = tokens.k.new_zeros(batch, heads, width)
    return Sums(keys.new_zeros(batch, heads, width, width), keys)


def _wide(x: Tensor) -> Tensor:
    """At least float32, since sums grow with the length; in one block, for matrix products."""
    return x.to(torch.promote_types(x.dtype, torch.float32)).contiguous()


def _chunks(x: Tensor, size: int) -> Tensor:
    """(B, H, T, D) -> (B, H, N, size, D), the last chunk filled up with zeros."""
    missing = -x.size(2) % size
    return (F.pad(x, (0, 0, 0, missing)) if missing else x).unflatten(2, (-1, size))
