"""Byte-pair encoding with subword-nmt (Sennrich et al., ACL 2016)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from math import inf
from typing import Any

from subword_nmt.apply_bpe import check_vocab_and_split

from ..lines import PathLike, open_outputs, read_lines
from ..report import with_progress
from .merges import END_OF_WORD, learn_merges
from .segmenter import Segmenter

HEADER = ("#version:", "0.2")

JOINT = re.compile("@@( |$)")

ESCAPED_END = "@&#64;"
"""Stands for ``@@`` at the end of a word, where ``undo`` would take it for a joint."""


class SubwordNmt(Segmenter):
    """Pieces of subword-nmt: all but a word's last piece end in ``@@``.

    With a ``vocabulary`` (one of the files that ``learn`` writes), merges that yield a piece seen
    fewer than ``threshold`` times there are undone, so that rare pieces of the other language do
    not occur.
    """

    joint = "@@ "

    def __init__(
        self, model: PathLike, vocabulary: PathLike | None = None, threshold: int = 50
    ) -> None:
        super().__init__(model)
        self.vocabulary, self.threshold = vocabulary, threshold
        self.known = _read_vocabulary(vocabulary, threshold) if vocabulary else None
        merges = _read_merges(model)
        self.ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
        self.parts = {"".join(pair): pair for pair in self.ranks}

    @classmethod
    def learn(cls, words: Counter[str], size: int, model: PathLike) -> None:
        merges = list(islice(with_progress(learn_merges(words), "learn", "merges"), size))
        if len(merges) < size:
            raise ValueError(
                f"`size` must be at most {len(merges)} for this text, in which no further pair of "
                f"pieces occurs twice, but is {size}"
            )
        with open_outputs(model) as (output,):
            output.writelines(f"{left} {right}\n" for left, right in (HEADER, *merges))

    @staticmethod
    def words(line: str) -> list[str]:
        words = line.split()
        if "@@" in line:
            return [w[:-2] + ESCAPED_END if w.endswith("@@") else w for w in words]
        return words

    def split(self, word: str) -> list[str]:
        pieces = self._merge([*word[:-1], word[-1] + END_OF_WORD])
        pieces[-1] = pieces[-1][: -len(END_OF_WORD)]
        if self.known is not None:
            return check_vocab_and_split(pieces, self.parts, self.known, "@@")
        return pieces

    def _merge(self, symbols: list[str]) -> list[str]:
        """Apply the merges, earliest learnt first, each to all its places from left to right.

        The same pieces as subword-nmt's own `encode`, in two thirds of the time.
        """
        while len(symbols) > 1:
            order = [self.ranks.get(pair, inf) for pair in zip(symbols, symbols[1:])]
            best = min(order)
            if best is inf:
                break
            place = order.index(best)
            whole = symbols[place] + symbols[place + 1]
            merged = symbols[:place]
            while place < len(symbols):
                found = place < len(order) and order[place] == best
                merged.append(whole if found else symbols[place])
                place += 2 if found else 1
            symbols = merged
        return symbols

    @staticmethod
    def undo(line: str) -> str:
        return JOINT.sub("", line).replace(ESCAPED_END, "@@")

    def __reduce__(self) -> tuple[type[Segmenter], tuple[Any, ...]]:
        return type(self), (self.model, self.vocabulary, self.threshold)


def _read_merges(path: PathLike) -> list[tuple[str, ...]]:
    try:
        header, *merges = [tuple(line.split(" ")) for line in read_lines(path)] or [()]
    except ValueError:
        header, merges = (), []
    if header != HEADER or any(len(pair) != 2 for pair in merges):
        raise ValueError(
            f"`model` must be a file of subword-nmt merges, but {path} is none; name the "
            "`--segmenter` that learnt it, or learn one with `fairseq-rope segment learn`"
        )
    return merges


def _read_vocabulary(path: PathLike, threshold: int) -> set[str]:
    known = set()
    for number, line in enumerate(read_lines(path), 1):
        piece, _, count = line.partition(" ")
        if not count.isdecimal():
            raise ValueError(
                f"`vocabulary` must hold a piece and its count on each line, but line {number} of "
                f"{path} is {line!r}; `fairseq-rope segment learn --vocabularies` writes such files"
            )
        if int(count) >= threshold:
            known.add(piece)
    return known
