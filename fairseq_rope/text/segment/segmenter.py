"""The contract of a segmenter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from functools import lru_cache
from typing import Any

from ..lines import PathLike

RESERVED = frozenset(["<s>", "<pad>", "</s>", "<unk>"])
"""Symbols that fairseq's dictionary keeps for itself; in text they would be read as commands."""

CACHED_WORDS = 2**17


class Segmenter(ABC):
    """Splits the words of a line into pieces, by a model learnt from word counts.

    A piece holds no white space of any kind (fairseq would break it there) and is never one of
    fairseq's reserved symbols.
    """

    joint: str
    """What stands between two pieces of one word."""

    def __init__(self, model: PathLike) -> None:
        self.model = model
        self._segment_cached = lru_cache(CACHED_WORDS)(self._segment)

    @classmethod
    @abstractmethod
    def learn(cls, words: Counter[str], size: int, model: PathLike) -> None:
        """Write a model of ``size``; ValueError if the words cannot fill that size."""

    @staticmethod
    @abstractmethod
    def words(line: str) -> list[str]:
        """Return the words of a line, rid of what ``undo`` would take for the segmenter's mark."""

    @abstractmethod
    def split(self, word: str) -> list[str]:
        """Return the pieces of one word, without ``joint``."""

    @staticmethod
    @abstractmethod
    def undo(line: str) -> str:
        """Return the words that a line of pieces was made of."""

    def __call__(self, line: str) -> str:
        """Return the pieces of a line between single spaces."""
        return " ".join(map(self._segment_cached, self.words(line)))

    def count_pieces(self, words: Counter[str]) -> Counter[str]:
        """Return how often each piece occurs in a text with these word counts."""
        pieces: Counter[str] = Counter()
        for word, count in words.items():
            for piece in self._segment(word).split(" "):
                pieces[piece] += count
        return pieces

    def _segment(self, word: str) -> str:
        pieces = self.split(word)
        if not RESERVED.isdisjoint(pieces):
            pieces = [
                part for piece in pieces for part in (piece if piece in RESERVED else [piece])
            ]
        return self.joint.join(pieces)

    def __reduce__(self) -> tuple[type[Segmenter], tuple[Any, ...]]:
        # A worker process reads the model again; the cache stays behind.
        return type(self), (self.model,)
