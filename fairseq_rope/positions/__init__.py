"""Position schemes: how a stack of Transformer layers knows word order.

POSITIONS is the one list of schemes: the command line's choices and the error message's.
"""

from .alibi import Alibi
from .learned import Learned
from .places import token_positions
from .relative import Relative
from .rotary import Rotary
from .scheme import AttentionPosition, LayerPositions, PositionScheme, Stack
from .sinusoidal import Sinusoidal
from .t5 import T5
from .xpos import XPos

POSITIONS: dict[str, type[PositionScheme]] = {
    "rotary": Rotary,
    "xpos": XPos,
    "alibi": Alibi,
    "relative": Relative,
    "t5": T5,
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
