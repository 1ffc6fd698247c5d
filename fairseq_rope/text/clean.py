"""Which sentence pairs are worth learning from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cleaner:
    """Says why a sentence pair should go, in the manner of Moses's clean-corpus-n.perl.

    Lengths are in words between white space; the ratio is of the longer to the shorter side.
    """

    max_words: int = 250
    max_ratio: float = 1.5

    def __call__(self, source: str, target: str) -> str | None:
        """Return the reason to drop the pair, or None to keep it."""
        short, long = sorted((len(source.split()), len(target.split())))
        if short == 0:
            return "empty"
        if long > self.max_words:
            return f"longer than {self.max_words} words"
        if long > self.max_ratio * short:
            return f"length ratio above {self.max_ratio:g}"
        return None
