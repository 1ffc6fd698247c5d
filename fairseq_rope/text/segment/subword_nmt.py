"""Byte-pair encoding with subword-nmt (Sennrich et al., ACL 2016)."""

from __future__ import annotations

import io
import re
from collections import Counter

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from ..lines import PathLike, open_outputs, read_lines
from .segmenter import Segmenter

HEADER = "#version: 0.2"

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
        known = _read_vocabulary(vocabulary, threshold) if vocabulary else None
        self.encoder = BPE(io.StringIO(_read_merges(model)), vocab=known)

    @classmethod
    def learn(cls, words: Counter[str], size: int, model: PathLike) -> None:
        merges = io.StringIO()
        learn_bpe([f"{word} {count}" for word, count in words.items()], merges, size, is_dict=True)
        learnt = merges.getvalue().count("\n") - 1
        if learnt < size:
            raise ValueError(
                f"`size` must be at most {learnt} for this text, in which no further pair of "
                f"pieces occurs twice, but is {size}"
            )
        with open_outputs(model) as (output,):
            output.write(merges.getvalue())

    @staticmethod
    def words(line: str) -> list[str]:
        words = line.split()
        if "@@" in line:
            return [w[:-2] + ESCAPED_END if w.endswith("@@") else w for w in words]
        return words

    def split(self, word: str) -> list[str]:
        *begin, last = self.encoder.segment_tokens([word])
        # The encoder remembers every word it ever saw; the words that matter are cached here.
        self.encoder.cache.clear()
        return [piece[: -len("@@")] for piece in begin] + [last]

    @staticmethod
    def undo(line: str) -> str:
        return JOINT.sub("", line).replace(ESCAPED_END, "@@")

    def __reduce__(self) -> tuple[type[Segmenter], tuple[object, ...]]:
        return type(self), (self.model, self.vocabulary, self.threshold)


def _read_merges(path: PathLike) -> str:
    lines = list(read_lines(path))
    if lines[:1] != [HEADER] or any(len(line.split(" ")) != 2 for line in lines):
        raise ValueError(
            f"`model` must be a file of subword-nmt merges that begins with {HEADER!r}, but {path} "
            "is none; name the `--segmenter` that learnt it, or learn one with "
            "`fairseq-rope segment learn`"
        )
    return "".join(f"{line}\n" for line in lines)


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
