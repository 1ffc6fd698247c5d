"""Telling languages apart by their most frequent words."""

from __future__ import annotations

from collections import Counter

# A language and about equally many of its words, so that counts can be compared.
_TABLE = """\
de: der die das und ist nicht ein eine mit für von auf den dem sich zu im
en: the of and to is that for it with as on are this be was not by
es: el la los las de que y en un una por con para se del es no
fr: le la les des et est que dans un une pour qui du au sur pas en
it: il di che la e non un una per con del della sono gli nel si è
nl: de het een van en is dat niet op te voor met zijn aan er ook in
"""

FUNCTION_WORDS = {
    language: frozenset(words.split())
    for language, _, words in (row.partition(":") for row in _TABLE.splitlines())
}

WITHOUT_SPACES = frozenset(["bo", "dz", "ja", "km", "lo", "my", "th", "yue", "zh"])
"""Languages that put no spaces between words, so that counts of words between spaces mislead."""

MANY_WORDS = 100
"""Frequent words below which a count says nothing."""


def count_function_words(line: str, counts: Counter[str]) -> None:
    """Add to ``counts``, by language, the words of the line that are frequent in the language."""
    words = line.lower().split()
    for language, frequent in FUNCTION_WORDS.items():
        counts[language] += sum(word in frequent for word in words)


def other_language(counts: Counter[str], stated: str) -> str | None:
    """Return the language of a text if it is clearly not the stated one, else None."""
    if stated not in FUNCTION_WORDS or not counts:
        return None
    likeliest, count = counts.most_common(1)[0]
    return likeliest if count >= MANY_WORDS and count > 2 * counts[stated] else None
