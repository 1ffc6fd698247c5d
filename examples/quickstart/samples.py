"""Sample translations beside their sources and references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap

SAMPLES = 10


def side_by_side(columns: Mapping[str, Sequence[str]]) -> str:
    """A table of `SAMPLES` lines, from the shortest to the longest, a column for each heading."""
    width = get_terminal_size().columns // len(columns) - 2
    by_length = sorted(zip(*columns.values()), key=lambda cells: len(cells[0]))
    last = len(by_length) - 1
    chosen = [by_length[last * number // (SAMPLES - 1)] for number in range(SAMPLES)]
    return "\n\n".join(_row(cells, width) for cells in [tuple(columns), *chosen])


def _row(cells: Sequence[str], width: int) -> str:
    """Cells that are too wide go on in the next line of their column."""
    lines = zip_longest(*(wrap(cell, width) for cell in cells), fillvalue="")
    return "\n".join("  ".join(f"{cell:<{width}}" for cell in line).rstrip() for line in lines)
