"""Rotary positions with decay, xPos (Sun et al. 2023, arXiv 2212.10554)."""

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from ..rotation import turn
from .rotary import Rotary
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack

GAMMA = 0.4
SCALE_BASE = 512  # places in which pair i decays by the factor zeta_i


class XPosPosition(AttentionPosition):
    """The turns and scales of one pass, shared by all layers.

    Args:
        query_phases, key_phases: (B or 1, 1, T, width/2) complex, of moduli zeta ** n and
            zeta ** -n
        layout: see fairseq_rope.rotation
        length: the last place and one more
    """

    def __init__(self, query_phases: Tensor, key_phases: Tensor, layout: str, length: int) -> None:
        self.query_phases = query_phases
        self.key_phases = key_phases
        self.layout = layout
        self.length = length

    def query(self, q: Tensor) -> Tensor:
        return self.turn(q, self.query_phases)

    def key(self, k: Tensor) -> Tensor:
        return self.turn(k, self.key_phases)

    def turn(self, x: Tensor, phases: Tensor) -> Tensor:
        """Raises: ValueError for a place whose scale the type of x cannot hold."""
        limit = xpos_limit(x.dtype)
        if self.length > limit:
            name = str(x.dtype).removeprefix("torch.")
            raise ValueError(
                f"a sentence of {self.length} tokens is longer than the {limit} to which "
                f"`decoder_position`='xpos' can scale keys in {name}; shorten it, compute in "
                "float32 if this is a smaller type, or train with decoder_position=rotary, which "
                "has no limit."
            )
        return turn(x, phases, self.layout)


class XPos(PositionScheme):
    """Turns as rotary positions do, and scales pair i of queries by zeta_i ** n, of keys by its
    inverse, where n = place / SCALE_BASE and zeta_i = (2i / width + GAMMA) / (1 + GAMMA).

    The score of query m and key n then carries zeta_i ** ((m - n) / SCALE_BASE), which decays
    into the past and would grow into the future: xPos serves the decoder alone. No parameters.
    Attention to the source turns without scale, where `rope_cross_attention` asks for it.

    Args:
        rotary: the turns
    """

    changeable = frozenset(("rope_base",))

    needs_scores = True  # q and k are of very different size, and mean something together only

    def __init__(self, rotary: Rotary) -> None:
        super().__init__(rotary.num_layers)
        self.rotary = rotary

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "XPos":
        if stack.name == "encoder":
            raise ValueError(
                "`position`='xpos' cannot serve the encoder, where scores would grow with each "
                "place that a key stands to the right of its query; give the encoder another "
                "position, such as rotary, and the decoder `decoder_position`='xpos'."
            )
        for option, off in (("rope_scaling", "none"), ("rope_values", "False")):
            if str(getattr(config, option)) != off:
                raise ValueError(
                    f"`{option}`={getattr(config, option)} has no effect on "
                    "`decoder_position`='xpos'; leave it out, or use decoder_position=rotary."
                )
        return cls(Rotary.build(config, stack))

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        names = ("rope_layout", "rope_fraction", "rope_cross_attention", "rope_base")
        rotary = Rotary.settings(config)
        return {name: rotary[name] for name in names}

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        turns, decay = self.rotary.turns(places), self.decay(places)
        length = int(places.max()) + 1 if places.numel() else 0
        own = XPosPosition(turns.phases * decay, turns.phases / decay, turns.layout, length)
        to_source = self.rotary.to_source(turns, source_places)
        return [LayerPositions(own, *to_source)] * self.num_layers

    def decay(self, places: Tensor) -> Tensor:
        """(B or 1, T) places -> (B or 1, 1, T, width/2) float32, zeta ** (place / SCALE_BASE)."""
        pairs = torch.arange(0, self.rotary.width, 2, device=places.device) / self.rotary.width
        zeta = (pairs + GAMMA) / (1 + GAMMA)
        return torch.exp(places[:, None, :, None] / SCALE_BASE * zeta.log())


def xpos_limit(dtype: torch.dtype) -> int:
    """The longest sequence, in tokens, whose queries and keys a type can hold.

    The fastest pair is scaled up in keys and down in queries; both keep a margin of a factor of
    64 for the numbers that are scaled. Scales are float32 in wider types too.
    """
    smallest = max(torch.finfo(kind).smallest_normal for kind in (dtype, torch.float32))
    zeta = GAMMA / (1 + GAMMA)
    return int(SCALE_BASE * math.log(64 * smallest) / math.log(zeta))
