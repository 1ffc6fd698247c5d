"""The output of fairseq-generate and fairseq-interactive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

HYPOTHESIS = re.compile(r"([HD])-([0-9]{1,18})\t\S+\t(.*)", re.DOTALL)
"""Kind, number of the sentence, log-probability, text. D is H after fairseq's detokeniser."""

LABELLED = re.compile(r"([A-Z])-([0-9]{1,18})\t")
"""How every line about a sentence begins: its source (S), hypothesis (H), probabilities (P)."""


def is_generated(lines: Sequence[str]) -> bool:
    """Tell fairseq's output, whole or only its hypotheses, from text with a line that looks so.

    Whole output has lines of several kinds about the same sentence.
    """
    labels = {match.groups() for match in map(LABELLED.match, lines) if match}
    whole = len({number for _, number in labels}) < len(labels)
    return whole or (bool(lines) and all(map(HYPOTHESIS.fullmatch, lines)))


def best_hypotheses(lines: Iterable[str]) -> dict[int, str]:
    """Return the best hypothesis of each sentence by its number (from 0).

    The lines may come in any order. A detokenised hypothesis (D) goes before a plain one (H).
    """
    by_kind: dict[str, dict[int, str]] = {"D": {}, "H": {}}
    for match in filter(None, map(HYPOTHESIS.fullmatch, lines)):
        by_kind[match[1]].setdefault(int(match[2]), match[3])
    return by_kind["D"] or by_kind["H"]


def in_source_order(generated: Mapping[int, str], source: Sequence[str]) -> list[str | None]:
    """Return one hypothesis for each line of the source, of which the model saw all but blank ones.

    A blank line has a blank one; a sentence that the model skipped has None. Raises ValueError if
    the hypotheses cannot be of this source.
    """
    sentences = [number for number, line in enumerate(source) if line.strip()]
    if sentences and not generated:
        raise ValueError(
            "no hypothesis (H-0, H-1, ...); is it fairseq's output, or were all sentences skipped?"
        )
    if generated and max(generated) >= len(sentences):
        raise ValueError(
            f"hypothesis H-{max(generated)} has no line in the source, which has "
            f"{len(sentences)} that are not blank (H-0 is the first); is it another source?"
        )
    ordered: list[str | None] = [""] * len(source)
    for number, place in enumerate(sentences):
        ordered[place] = generated.get(number)
    return ordered
