"""One encoder layer and one decoder layer, on (batch, time, channel)."""

from typing import Callable, Optional

from fairseq import utils
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn

from ..attention import KERNELS, AttentionMask, SoftmaxKernel
from ..attention.cross_attention import CrossAttention
from ..attention.self_attention import IncrementalState, SelfAttention
from ..positions import AttentionPosition, LayerPositions
from .config import RoFormerConfig


class TransformerLayer(nn.Module):
    """What both layers share: self-attention, feed-forward, and how a residual wraps a sublayer."""

    def __init__(
        self, config: RoFormerConfig, embed_dim: int, ffn_dim: int, heads: int, pre_norm: bool
    ) -> None:
        super().__init__()
        self.pre_norm = pre_norm
        kernel = KERNELS[str(config.attention)].build(config, embed_dim // heads)
        self.self_attn = SelfAttention(embed_dim, heads, kernel, config.attention_dropout)
        self.self_attn_layer_norm = LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, embed_dim)
        self.final_layer_norm = LayerNorm(embed_dim)
        self.activation = utils.get_activation_fn(str(config.activation_fn))
        name = type(self).__name__
        self.dropout_module = FairseqDropout(config.dropout, module_name=name)
        self.activation_dropout_module = FairseqDropout(config.activation_dropout, module_name=name)

    def residual(self, x: Tensor, norm: nn.Module, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """x + dropout(sublayer(norm(x))) with pre-norm, norm(x + dropout(sublayer(x))) without."""
        y = self.dropout_module(sublayer(norm(x) if self.pre_norm else x))
        # In place where it can be: nothing else reads what a sublayer's last projection wrote.
        # Under autocast that is in half precision, and the sum must stay in float32.
        y = y.add_(x) if y.dtype == x.dtype else x + y
        return y if self.pre_norm else norm(y)

    def feed_forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C), each token by itself."""
        return self.fc2(self.activation_dropout_module(self.activation(self.fc1(x))))


class EncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward; parameters named and drawn as fairseq does."""

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__(
            config,
            config.encoder_embed_dim,
            config.encoder_ffn_embed_dim,
            config.encoder_attention_heads,
            config.encoder_normalize_before,
        )

    def forward(self, x: Tensor, position: AttentionPosition, mask: AttentionMask) -> Tensor:
        """(B, S, C) -> (B, S, C)."""
        x = self.residual(x, self.self_attn_layer_norm, lambda y: self.self_attn(y, position, mask))
        return self.residual(x, self.final_layer_norm, self.feed_forward)


class DecoderLayer(TransformerLayer):
    """Self-attention, attention to the source, feed-forward; named and drawn as fairseq does."""

    def __init__(self, config: RoFormerConfig) -> None:
        super().__init__(
            config,
            config.decoder_embed_dim,
            config.decoder_ffn_embed_dim,
            config.decoder_attention_heads,
            config.decoder_normalize_before,
        )
        self.encoder_attn = CrossAttention(
            config.decoder_embed_dim,
            config.decoder_attention_heads,
            config.encoder_embed_dim,
            SoftmaxKernel(),
            config.attention_dropout,
        )
        self.encoder_attn_layer_norm = LayerNorm(config.decoder_embed_dim)

    def forward(
        self,
        x: Tensor,
        source: Tensor,
        positions: LayerPositions,
        mask: AttentionMask,
        source_mask: AttentionMask,
        incremental_state: IncrementalState = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """(B, T, C) target, (B/n, S, C') source -> (B, T, C), and (B, H, T, S) weights if asked."""
        weights = None

        def attend_source(y: Tensor) -> Tensor:
            nonlocal weights
            y, weights = self.encoder_attn(
                y,
                source,
                positions.target,
                positions.source,
                source_mask,
                incremental_state,
                need_weights,
            )
            return y

        x = self.residual(
            x,
            self.self_attn_layer_norm,
            lambda y: self.self_attn(y, positions.own, mask, incremental_state),
        )
        x = self.residual(x, self.encoder_attn_layer_norm, attend_source)
        return self.residual(x, self.final_layer_norm, self.feed_forward), weights
