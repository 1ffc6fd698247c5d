"""Curves as an SVG file, the same file for the same figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "fairseq_rope"
from matplotlib import pyplot as plt  # noqa: E402  (after the backend is chosen)


class Curve(NamedTuple):
    name: str
    x: Sequence[float]
    y: Sequence[float]


def draw(curves: Sequence[Curve], x_name: str, y_name: str, path: Path) -> None:
    """Draw all curves, each in a colour and dash of its own, with their names beside."""
    figure, axes = plt.subplots(figsize=(9, 5))
    colors, dashes = plt.get_cmap("tab10").colors, ("-", "--", ":")
    for number, curve in enumerate(curves):
        style = {
            "color": colors[number % len(colors)],
            "linestyle": dashes[number // len(colors) % 3],
        }
        axes.plot(curve.x, curve.y, marker=".", label=curve.name, **style)
    axes.set(xlabel=x_name, ylabel=y_name)
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
