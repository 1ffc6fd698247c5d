"""Rotary position embedding (RoPE) as pure functions.

RoFormer (Su et al. 2021, arXiv 2104.09864) writes a token's place into attention by turning
the query and the key instead of adding a vector to the embedding. Split a head of width d into
d/2 pairs of numbers and read each pair as one complex number. At place m, pair i is multiplied
by a unit complex number (eq. 12; eqs. 13 and 15 are the same with real matrices):

    x_i  ->  x_i * exp(1j * m * theta_i),        theta_i = base ** (-2i / d)

The score of a query at place m with a key at place n is the real part of q * conj(k), so the two
turns become one turn by the difference (eq. 12; eq. 16 with matrices):

    Re[ q e^{1j m theta}  conj(k e^{1j n theta}) ]  =  Re[ q conj(k) e^{1j (m - n) theta} ]

Attention so sees distances, while each token is turned once, by its own place alone. Four steps
lead from a place to a turned vector, and the first three depend on places only, so that a model
takes them once for all of its layers:

    frequencies = rotary_frequencies(dim)            # radians per place, one for each pair
    angles = rotary_angles(places, frequencies)      # radians
    phases = rotary_phases(angles)                   # unit complex numbers
    turned = turn(x, phases)                         # rotate(x, angles) takes both last steps

Angles are float32 in models of any precision: bfloat16 cannot tell place 257 from 258.
"""

import math
from dataclasses import dataclass
from typing import Callable, Optional

import torch
from torch import Tensor

LAYOUTS = ("interleaved", "half")


def rotary_frequencies(
    dim: int,
    base: float = 10000.0,
    scaling: Optional["RotaryScaling"] = None,
    device: Optional[torch.device] = None,
) -> Tensor:
    """The angle by which one step in place turns each pair (RoFormer eq. 15).

    Args:
        dim: number of rotated dimensions of a head, even
        base: theta_i = base ** (-2i / dim); a larger base turns more slowly
        scaling: how the frequencies are stretched for texts longer than those trained on

    Returns:
        (dim/2,) float32, radians per place, falling from 1 to about 1/base

    Raises:
        ValueError: `dim` is odd or not positive
    """
    if dim <= 0 or dim % 2:
        raise ValueError(f"`dim` must be a positive even number, but is {dim}.")
    if scaling is not None:
        return SCALINGS[scaling.method](dim, base, scaling, device).float()
    return _frequencies(dim, base, device).float()


def rotary_angles(places: Tensor, frequencies: Tensor) -> Tensor:
    """Place times frequency, in float32 and outside of autocast's reach.

    Args:
        places: (...) integers or reals; any leading shape, any order, gaps allowed
        frequencies: (dim/2,) radians per place

    Returns:
        (..., dim/2) float32, radians
    """
    # A plain product: autocast would run a matrix product (outer, einsum) in bfloat16.
    return places.float().unsqueeze(-1) * frequencies.float()


def rotary_phases(angles: Tensor) -> Tensor:
    """The unit complex numbers exp(1j * angle): (..., dim/2) radians -> (..., dim/2) complex."""
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, angles: Tensor, layout: str = "interleaved") -> Tensor:
    """Turn each pair of `x` by its angle (RoFormer eq. 34). See `turn` for shapes and errors."""
    return turn(x, rotary_phases(angles), layout)


def turn(x: Tensor, phases: Tensor, layout: str = "interleaved") -> Tensor:
    """Multiply each pair of `x`, read as a complex number, by its phase.

    The gradient of `x` needs the phases alone, so nothing of `x` is kept for the backward pass.

    Args:
        x: (..., dim), any floating point type
        phases: complex, broadcast against (..., dim/2); where there are fewer phases than pairs,
            the first 2 * phases.size(-1) dimensions turn and the others pass through unchanged
        layout: which dimensions make a pair. "interleaved": (0, 1), (2, 3), ... (the paper);
            "half": (i, i + dim/2). The two differ by a permutation of the projection's rows.

    Returns:
        the shape and type of `x`

    Raises:
        ValueError: unknown layout, or more phases than pairs
    """
    width = 2 * phases.size(-1)
    if width > x.size(-1):
        raise ValueError(f"{width} dimensions cannot turn in a vector of {x.size(-1)}.")
    if width < x.size(-1):
        return torch.cat((turn(x[..., :width], phases, layout), x[..., width:]), dim=-1)
    if layout not in LAYOUTS:
        raise ValueError(f"`layout` must be one of {', '.join(LAYOUTS)}, but is {layout!r}.")
    half = layout == "half"
    pairs = x.to(torch.promote_types(x.dtype, torch.float32))
    pairs = pairs.unflatten(-1, (2, -1)).transpose(-1, -2) if half else pairs.unflatten(-1, (-1, 2))
    turned = torch.view_as_real(_as_complex(pairs) * phases)
    return (turned.transpose(-1, -2) if half else turned).flatten(-2).to(x.dtype)


def _as_complex(pairs: Tensor) -> Tensor:
    """(..., 2) real -> (...) complex; a view, of a copy where memory does not hold whole pairs."""
    odd = pairs.storage_offset() % 2 or any(stride % 2 for stride in pairs.stride()[:-1])
    return torch.view_as_complex(pairs.contiguous() if odd or pairs.stride(-1) != 1 else pairs)


@dataclass(frozen=True)
class RotaryScaling:
    """How a rotary model reads texts longer than those it was trained on.

    Args:
        method: one of SCALINGS
        factor: wanted length / trained length, at least 1; 1 changes nothing
        original_positions: the trained length in tokens (used by yarn)

    Raises:
        ValueError: unknown method, factor below 1, or no trained length
    """

    method: str
    factor: float
    original_positions: int = 1024

    def __post_init__(self) -> None:
        if self.method not in SCALINGS:
            raise ValueError(f"`method` must be one of {sorted(SCALINGS)}, but is {self.method!r}.")
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"`factor` must be a number of at least 1, but is {self.factor}.")
        if self.original_positions < 1:
            raise ValueError(
                f"`original_positions` must be >= 1, but is {self.original_positions}."
            )

    @property
    def logit_scale(self) -> float:
        """What scores are multiplied by: 1/t in arXiv 2309.00071, sqrt(1/t) = 0.1 ln(s) + 1."""
        return (0.1 * math.log(self.factor) + 1.0) ** 2 if self.method == "yarn" else 1.0


def _frequencies(dim: int, base: float, device: Optional[torch.device]) -> Tensor:
    exponents = torch.arange(0, dim, 2, dtype=torch.float64, device=device) / dim
    return base**-exponents


def _linear(
    dim: int, base: float, scaling: RotaryScaling, device: Optional[torch.device]
) -> Tensor:
    """Position interpolation (Chen et al. 2023, arXiv 2306.15595): place / factor."""
    return _frequencies(dim, base, device) / scaling.factor


def _ntk(dim: int, base: float, scaling: RotaryScaling, device: Optional[torch.device]) -> Tensor:
    """ "NTK-aware": a larger base, so that the slowest pair alone is stretched by the factor."""
    if dim == 2:
        raise ValueError("ntk scaling needs at least 4 rotated dimensions, but there are 2.")
    return _frequencies(dim, base * scaling.factor ** (dim / (dim - 2)), device)


def _yarn(dim: int, base: float, scaling: RotaryScaling, device: Optional[torch.device]) -> Tensor:
    """ "NTK-by-parts" of YaRN (Peng et al. 2023, arXiv 2309.00071).

    Pairs that turn more than 32 times within the trained length keep their frequency, pairs that
    turn less than once are divided by the factor, those between are mixed by a linear ramp.
    """
    beta_slow, beta_fast = 1.0, 32.0
    frequencies = _frequencies(dim, base, device)
    turns = scaling.original_positions * frequencies / (2 * math.pi)
    keep = ((turns - beta_slow) / (beta_fast - beta_slow)).clamp(0, 1)
    stretched = frequencies / scaling.factor
    return stretched + keep * (frequencies - stretched)


SCALINGS: dict[str, Callable[[int, float, RotaryScaling, Optional[torch.device]], Tensor]] = {
    "linear": _linear,
    "ntk": _ntk,
    "yarn": _yarn,
}
