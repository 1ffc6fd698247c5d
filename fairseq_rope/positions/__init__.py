"""Position schemes: how a stack of Transformer layers knows word order.

POSITIONS is the one list of schemes: the command line's choices and the error message's.
"""

from .learned import Learned
from .places import token_positions
from .rotary import Rotary
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack
from .sinusoidal import Sinusoidal

POSITIONS: dict[str, type[PositionScheme]] = {
    "rotary": Rotary,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": PositionScheme,
}

__all__ = [
    "POSITIONS",
    "AttentionPosition",
    "LayerPositions",
    "PositionScheme",
    "Stack",
    "token_positions",
]
