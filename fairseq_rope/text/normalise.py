"""One way to write each character: Unicode, white space, punctuation."""

from __future__ import annotations

import re
import unicodedata
from functools import partial
from operator import methodcaller
from typing import Callable

from sacremoses import MosesPunctNormalizer

NO_BREAK_SPACE = "\xa0"
METACHARACTERS = frozenset(r"\.^$*+?{}[]|()")


def normalise_space(line: str) -> str:
    """Return the line in Unicode's composed form (NFC), its words between single plain spaces.

    Characters without a glyph (control, format, private use, unassigned) vanish, such as NUL, the
    soft hyphen and the byte order mark.
    """
    return " ".join(_printable(unicodedata.normalize("NFC", line)).split())


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    # Moses's rules for punctuation look at no-break spaces, so those stay for now.
    return "".join(
        char if char.isprintable() or char == NO_BREAK_SPACE else " " if char.isspace() else ""
        for char in line
    )


class Normaliser:
    """``normalise_space`` and the rules of Moses's normalize-punctuation.perl for one language."""

    def __init__(self, language: str) -> None:
        self.rules = [_rule(*rule) for rule in MosesPunctNormalizer(language).substitutions]

    def __call__(self, line: str) -> str:
        # The rules are written for lines that end in LF: one takes it for "not the last character".
        line = _printable(unicodedata.normalize("NFC", line)) + "\n"
        for rule in self.rules:
            line = rule(line)
        return " ".join(line.split())


def _rule(pattern: str, replacement: str) -> Callable[[str], str]:
    """Return a substitution in its fastest form."""
    if METACHARACTERS.isdisjoint(pattern) and "\\" not in replacement:
        return methodcaller("replace", pattern, replacement)
    if (pattern, replacement) == (" +", " "):
        # The same without replacing every single space by itself.
        pattern = " {2,}"
    return partial(re.compile(pattern).sub, replacement)
