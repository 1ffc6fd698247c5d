"""A made-up text in the layout of Multi30k, to try a benchmark without data."""

import gzip
import random
from pathlib import Path

from .pipeline import PARTS

WORDS = {
    "the dog": "der Hund",
    "the cat": "die Katze",
    "an old man": "ein alter Mann",
    "my friend": "mein Freund",
    "sees": "sieht",
    "likes": "mag",
    "doesn't hear": "hört nicht",
    "a red car": "ein rotes Auto",
    "the well-known house": "das bekannte Haus",
    "many people": "viele Leute",
    "today": "heute",
    "in the garden": "im Garten",
    "again and again": "immer wieder",
}
ENGLISH = list(WORDS)
LINES = dict(zip(PARTS, (600, 30, 40)))


def write_toy_text(folder: Path) -> None:
    """Sentences of subject, verb, object and up to four adverbials."""
    draw = random.Random(1)
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in LINES.items():
        lines = [_sentence(draw) for _ in range(count)]
        for language, side in zip(("en", "de"), zip(*lines)):
            text = "".join(f"{line}\n" for line in side)
            (folder / f"{part}.{language}.gz").write_bytes(gzip.compress(text.encode()))


def _sentence(draw: random.Random) -> tuple[str, str]:
    parts = [draw.choice(ENGLISH[a:b]) for a, b in ((0, 4), (4, 7), (7, 10))]
    parts += draw.choices(ENGLISH[10:], k=draw.randint(0, 4))
    english, german = " ".join(parts), " ".join(WORDS[part] for part in parts)
    return f"{english[0].upper()}{english[1:]}.", f"{german[0].upper()}{german[1:]}."
