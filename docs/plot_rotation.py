"""Draw docs/rotation.svg, the picture of docs/positions.md:  python docs/plot_rotation.py"""

from pathlib import Path

import matplotlib
import torch

from fairseq_rope.rotation import rotary_angles, rotary_frequencies, rotary_phases, rotate

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "fairseq_rope"  # the same picture from every run
from matplotlib import pyplot as plt  # noqa: E402  (after the backend is chosen)

QUERY, KEY = "tab:blue", "tab:orange"


def draw_turns(axes: plt.Axes) -> None:
    """One pair of a query and of a key, at two places each, the same distance apart."""
    pair = torch.tensor([1.0, 0.0])
    axes.add_patch(plt.Circle((0, 0), 1, fill=False, color="lightgrey"))
    for places, style in (((1.0, 3.0), "-"), ((5.0, 7.0), "--")):
        for place, color, name in zip(places, (QUERY, KEY), ("query", "key")):
            x, y = rotate(pair, rotary_angles(torch.tensor(place), torch.tensor([0.6])))
            axes.plot([0, x], [0, y], style, color=color, lw=2)
            axes.annotate(f"{name} at {place:g}", (1.25 * x, 1.15 * y), ha="center", va="center")
    axes.set(
        xlim=(-1.7, 1.7), ylim=(-1.3, 1.3), aspect="equal", title="One pair turns with its place"
    )
    axes.axis("off")


def draw_frequencies(axes: plt.Axes) -> None:
    """The real part of a few phases along the sentence: fast pairs and slow pairs."""
    places = torch.arange(0, 64)
    phases = rotary_phases(rotary_angles(places, rotary_frequencies(64)))
    for pair in (0, 6, 12, 24):
        axes.plot(places, phases.real[:, pair], label=f"pair {pair}")
    axes.set(ylim=(-1.1, 1.6), xlabel="place", title="Cosine of the turn, d = 64")
    axes.legend(loc="upper right", fontsize="small", ncols=2)


def draw_decay(axes: plt.Axes) -> None:
    """The mean of |S_i| over pairs, which bounds the score (RoFormer section 3.4.3)."""
    distances = torch.arange(0, 257)
    phases = rotary_phases(rotary_angles(distances, rotary_frequencies(64)))
    axes.plot(distances, phases.cumsum(dim=-1).abs().mean(dim=-1), color="black")
    axes.set(xlabel="distance", title="Bound of the score, d = 64")


def main() -> None:
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.6))
    for draw, axes in zip((draw_turns, draw_frequencies, draw_decay), panels):
        draw(axes)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("rotation.svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
