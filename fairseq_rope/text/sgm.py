"""Test sets in the SGML of the WMT shared tasks."""

from __future__ import annotations

import re
from xml.sax.saxutils import unescape

from .lines import PathLike, read_lines

SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.DOTALL | re.IGNORECASE)
OPENING = re.compile(r"<seg\b", re.IGNORECASE)
SET = re.compile(r"<(srcset|refset)\b[^>]*>", re.IGNORECASE)
QUOTES = {"&quot;": '"', "&apos;": "'"}


def read_sgm(path: PathLike, language: str) -> list[str]:
    """Return the segments of a source or reference file, in order, one line each.

    Raises ValueError if a segment does not end or the file is of another language. A source file
    may say "any" for its language.
    """
    text = "\n".join(read_lines(path))
    _check_language(path, text, language)
    segments = SEGMENT.findall(text)
    begun = len(OPENING.findall(text))
    if not begun or len(segments) != begun:
        raise ValueError(
            f"{path}: {begun} segments begin, but {len(segments)} are complete; "
            "fetch the file again"
        )
    return [unescape(" ".join(segment.split()), QUOTES) for segment in segments]


def _check_language(path: PathLike, text: str, language: str) -> None:
    tag = SET.search(text)
    if tag is None:
        raise ValueError(f"{path}: neither a <srcset> nor a <refset>, so not a WMT test set")
    name = "srclang" if tag[1].lower() == "srcset" else "trglang"
    found = re.search(rf'\b{name}="(\w+)"', tag[0], re.IGNORECASE)
    if found and found[1].lower() not in (language, "any"):
        raise ValueError(
            f"`--language` is {language}, but {path} says {name}={found[1]!r}; "
            "give the file of the right language"
        )
