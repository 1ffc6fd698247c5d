"""What encoder and decoder share: embeddings, position scheme and a run of layers."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from fairseq.modules import LayerNorm
from fairseq.modules.fairseq_dropout import FairseqDropout
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..attention import KERNELS
from ..positions import POSITIONS, Stack
from .config import RoFormerConfig, position_of
from .layers import TransformerLayer

NO_LIMIT = 10**9  # fairseq takes the smallest of all limits, so a stack without one says this


class TransformerStack(nn.Module):
    """Mixed into fairseq's encoder and decoder base classes. Parameter names are fairseq's."""

    def build_stack(
        self,
        config: RoFormerConfig,
        side: str,
        embed_tokens: nn.Embedding,
        layer: type[TransformerLayer],
    ) -> None:
        """Make the modules of one side, "encoder" or "decoder", from its options."""
        width = getattr(config, f"{side}_embed_dim")
        depth = getattr(config, f"{side}_layers")
        limit = config.max_source_positions if side == "encoder" else config.max_target_positions
        heads = getattr(config, f"{side}_attention_heads")
        padding_idx = embed_tokens.padding_idx
        self.padding_idx = padding_idx
        self.embed_tokens = embed_tokens
        self.embed_scale = 1.0 if config.no_scale_embedding else math.sqrt(width)
        self.embed_positions = POSITIONS[position_of(config, side)].build(
            config, Stack(side, width, heads, depth, padding_idx, limit)
        )
        if self.embed_positions.needs_scores and not KERNELS[str(config.attention)].has_scores:
            raise ValueError(_no_scores(config, side))
        self.layernorm_embedding = LayerNorm(width) if config.layernorm_embedding else None
        self.dropout_module = FairseqDropout(config.dropout, module_name=type(self).__name__)
        self.layers = nn.ModuleList(layer(config) for _ in range(depth))
        pre_norm = getattr(config, f"{side}_normalize_before")
        self.layer_norm = LayerNorm(width) if pre_norm else None
        self.layerdrop = getattr(config, f"{side}_layerdrop")
        self.checkpoint_activations = config.checkpoint_activations

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        """(B, T) tokens and (B or 1, T) places -> (B, T, C), what the first layer reads."""
        x = self.embed_positions.embed(self.embed_scale * self.embed_tokens(tokens), places)
        x = x if self.layernorm_embedding is None else self.layernorm_embedding(x)
        return self.dropout_module(x)

    def layers_to_run(self) -> Iterator[int]:
        """The layers to run: all but those that LayerDrop (arXiv 1909.11556) skips in training."""
        for index in range(len(self.layers)):
            if not (self.training and self.layerdrop and torch.rand(()) < self.layerdrop):
                yield index

    def run(self, index: int, *inputs: Any) -> Any:
        """Run one layer; its activations are computed twice where that is asked for."""
        if self.checkpoint_activations and self.training:
            return checkpoint(self.layers[index], *inputs, use_reentrant=False)
        return self.layers[index](*inputs)

    def max_positions(self) -> int:
        """The longest sequence in tokens that the position scheme can number."""
        return self.embed_positions.max_positions or NO_LIMIT


def _no_scores(config: RoFormerConfig, side: str) -> str:
    position = position_of(config, side)
    scaled = f" with `rope_scaling`='{config.rope_scaling}'" if position == "rotary" else ""
    return (
        f"`position`={position!r}{scaled} in the {side} acts on the score of a query and a key, "
        f"which `attention`='{config.attention}' does not compute; choose attention=softmax, or "
        "position rotary, sinusoidal, learned or none."
    )
