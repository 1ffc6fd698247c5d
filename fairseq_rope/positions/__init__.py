"""Position schemes: how a stack of Transformer layers knows word order.

POSITIONS is the one list of schemes: the command line's choices and the error message's.
"""

from .learned import Learned
from .places import token_positions
from .rotary import Rotary
from .scheme import AttentionPosition, PositionScheme, Stack
from .sinusoidal import Sinusoidal

POSITIONS: dict[str, type[PositionScheme]] = {
    "rotary": Rotary,
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": PositionScheme,
}

__all__ = ["POSITIONS", "AttentionPosition", "PositionScheme", "Stack", "token_positions"]
