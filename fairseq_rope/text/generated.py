"""The output of fairseq-generate and fairseq-interactive."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .lines import PathLike, read_lines

HYPOTHESIS = re.compile(r"([HD])-(\d+)\t\S+\t(.*)", re.DOTALL)
"""Kind, number of the sentence, log-probability, text. D is H after fairseq's detokeniser."""


def read_generated(path: PathLike) -> dict[int, str]:
    """Return the best hypothesis of each sentence by its number (from 0); empty for other files.

    The lines may come in any order. A detokenised hypothesis (D) goes before a plain one (H).
    """
    by_kind: dict[str, dict[int, str]] = {"D": {}, "H": {}}
    for match in filter(None, map(HYPOTHESIS.fullmatch, read_lines(path))):
        by_kind[match[1]].setdefault(int(match[2]), match[3])
    return by_kind["D"] or by_kind["H"]


def in_source_order(generated: dict[int, str], source: PathLike) -> Iterator[str | None]:
    """Yield one hypothesis for each line of the source, of which the model saw all but blank ones.

    A blank line has a blank one; a sentence that the model skipped has None.
    """
    number = 0
    for line in read_lines(source):
        if line.strip():
            yield generated.get(number)
            number += 1
        else:
            yield ""
