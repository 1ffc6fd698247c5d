"""Rotary positions (RoFormer, arXiv 2104.09864)."""

import math
from collections.abc import Sequence
from typing import Any, Optional

from torch import Tensor

from ..rotation import (
    RotaryScaling,
    rotary_angles,
    rotary_frequencies,
    rotary_phases,
    turn,
)
from .scheme import NO_POSITION, AttentionPosition, LayerPositions, PositionScheme, Stack


class RotaryPosition(AttentionPosition):
    """The turns of one pass, shared by all layers.

    Args:
        phases: (B or 1, 1, T, width/2) complex, one turn for each token and pair
    """

    def __init__(self, phases: Tensor, scheme: "Rotary") -> None:
        self.phases = phases
        self.layout = scheme.layout
        self.values = scheme.values
        self.logit_scale = scheme.scaling.logit_scale if scheme.scaling else 1.0

    def query(self, q: Tensor) -> Tensor:
        return q if self.logit_scale == 1.0 else q * self.logit_scale

    def value(self, v: Tensor) -> Tensor:
        return self.rotate(v) if self.values else v

    def rotate(self, x: Tensor) -> Tensor:
        return turn(x, self.phases, self.layout)


class Rotary(PositionScheme):
    """Turns queries and keys (and values if asked) by their place; no parameters, no length limit.

    Args:
        num_layers: layers that share the turns
        width: rotated dimensions of a head, even
        base, layout, scaling: see fairseq_rope.rotation
        values: turn the values too
        cross_attention: turn the attention to the source too
    """

    changeable = frozenset(
        ("rope_base", "rope_scaling", "rope_scaling_factor", "rope_original_positions")
    )

    def __init__(
        self,
        num_layers: int,
        width: int,
        base: float = 10000.0,
        layout: str = "interleaved",
        scaling: Optional[RotaryScaling] = None,
        values: bool = False,
        cross_attention: bool = False,
    ) -> None:
        super().__init__(num_layers)
        self.width = width
        self.base = base
        self.layout = layout
        self.scaling = scaling
        self.values = values
        self.cross_attention = cross_attention
        self.needs_scores = scaling is not None and scaling.logit_scale != 1.0

    @classmethod
    def build(cls, config: Any, stack: Stack) -> "Rotary":
        if not 1 < config.rope_base < math.inf:
            raise ValueError(f"`rope_base` must be a number above 1, but is {config.rope_base}.")
        width = _rotary_width(stack, config.rope_fraction)
        return cls(
            stack.num_layers,
            width,
            config.rope_base,
            str(config.rope_layout),
            _scaling(config, width),
            config.rope_values,
            config.rope_cross_attention,
        )

    @staticmethod
    def settings(config: Any) -> dict[str, Any]:
        return {
            "rope_layout": str(config.rope_layout),
            "rope_fraction": config.rope_fraction,
            "rope_cross_attention": config.rope_cross_attention,
            "rope_values": config.rope_values,
            "rope_base": config.rope_base,
            "rope_scaling": str(config.rope_scaling),
            "rope_scaling_factor": config.rope_scaling_factor,
            "rope_original_positions": config.rope_original_positions,
        }

    def extra_repr(self) -> str:
        return f"width={self.width}, base={self.base:g}, layout={self.layout}, {self.scaling}"

    def forward(
        self, places: Tensor, source_places: Optional[Tensor] = None
    ) -> Sequence[LayerPositions]:
        own = self.turns(places)
        return [LayerPositions(own, *self.to_source(own, source_places))] * self.num_layers

    def to_source(
        self, target: RotaryPosition, source_places: Optional[Tensor]
    ) -> tuple[AttentionPosition, AttentionPosition]:
        """The turns of the attention to the source: of its queries, and of its keys and values."""
        if not self.cross_attention:
            return NO_POSITION, NO_POSITION
        return target, NO_POSITION if source_places is None else self.turns(source_places)

    def turns(self, places: Tensor) -> RotaryPosition:
        """(B or 1, T) places -> their turns."""
        # Made anew in each pass, in float32: a buffer would follow `.half()` and lose the places.
        frequencies = rotary_frequencies(self.width, self.base, self.scaling, places.device)
        return RotaryPosition(rotary_phases(rotary_angles(places, frequencies)).unsqueeze(1), self)


def _rotary_width(stack: Stack, fraction: float) -> int:
    """The number of rotated dimensions of a head; refuses what is no even whole number."""
    width = stack.head_dim * fraction
    if not 0 < fraction <= 1:
        raise ValueError(f"`rope_fraction` must be above 0 and at most 1, but is {fraction}.")
    if stack.head_dim % 2:
        fit = stack.head_dim + 1
        raise ValueError(
            f"rotary positions need an even head size, but `{stack.name}_embed_dim`="
            f"{stack.embed_dim} with `{stack.name}_attention_heads`={stack.num_heads} gives "
            f"{stack.head_dim}; use {stack.name}_embed_dim={fit * stack.num_heads} "
            f"(head size {fit}) or another number of heads."
        )
    near = max(2, 2 * round(width / 2))
    if abs(width - near) > 1e-3:  # a third of 24 may be typed as 0.333333
        raise ValueError(
            f"`rope_fraction`={fraction} of a head of {stack.head_dim} gives {width:g} rotated "
            f"dimensions, but pairs need an even whole number; the nearest fraction is "
            f"{near / stack.head_dim:g} ({near} dimensions)."
        )
    return near


def _scaling(config: Any, width: int) -> Optional[RotaryScaling]:
    """The scaling that the options ask for; refuses what has no effect or gives no frequencies."""
    method, factor = str(config.rope_scaling), config.rope_scaling_factor
    if method == "none":
        if factor is not None:
            raise ValueError(
                f"`rope_scaling_factor`={factor} has no effect with `rope_scaling`='none'; "
                "choose rope_scaling linear, ntk or yarn, or leave the factor out."
            )
        return None
    if factor is None:
        raise ValueError(
            f"`rope_scaling`={method!r} needs `rope_scaling_factor`, the wanted length divided "
            "by the trained length, for example 4."
        )
    trained = config.rope_original_positions
    try:
        scaling = RotaryScaling(method, float(factor), int(trained))
        rotary_frequencies(width, config.rope_base, scaling)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"`rope_scaling`={method!r}, `rope_scaling_factor`={factor}, "
            f"`rope_original_positions`={trained}: {error}"
        ) from None
    return scaling
