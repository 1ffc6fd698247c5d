"""Moses's tokenizer.perl and detokenizer.perl, by sacremoses."""

from __future__ import annotations

from collections.abc import Collection

from sacremoses import MosesDetokenizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

MOSES_LANGUAGES = frozenset(NonbreakingPrefixes().available_langs.values())
"""Languages of which Moses knows the abbreviations; for any other it takes the English ones."""


class Tokeniser:
    """Puts spaces between words and punctuation.

    ``split_hyphens`` writes "well-known" as "well @-@ known" (tokenizer.perl -a); ``escape``
    writes the characters that are special to Moses as entities, an apostrophe as "&apos;".
    """

    def __init__(self, language: str, split_hyphens: bool = False, escape: bool = True) -> None:
        self.moses = _FastMosesTokenizer(language)
        self.split_hyphens, self.escape = split_hyphens, escape

    def __call__(self, line: str) -> str:
        tokens = self.moses.tokenize(
            line, aggressive_dash_splits=self.split_hyphens, return_str=True, escape=self.escape
        )
        # Moses leaves a space after a closing quote at the end.
        return tokens.rstrip(" ")


class Detokeniser:
    """Undoes the tokeniser, entities and "@-@" included, as far as rules can."""

    def __init__(self, language: str) -> None:
        self.moses = MosesDetokenizer(language)

    def __call__(self, line: str) -> str:
        return self.moses.detokenize(line.split())


class _FastMosesTokenizer(MosesTokenizer):
    """sacremoses' tokeniser with sets where it searches lists and strings for every word."""

    NONBREAKING_PREFIXES: Collection[str]
    NUMERIC_ONLY_PREFIXES: Collection[str]

    def __init__(self, language: str) -> None:
        super().__init__(language)
        self.NONBREAKING_PREFIXES = frozenset(self.NONBREAKING_PREFIXES)
        self.NUMERIC_ONLY_PREFIXES = frozenset(self.NUMERIC_ONLY_PREFIXES)
        self.lower, self.alpha = frozenset(self.IsLower), frozenset(self.IsAlpha)

    def islower(self, text: str) -> bool:
        return self.lower.issuperset(text)

    def isanyalpha(self, text: str) -> bool:
        return not self.alpha.isdisjoint(text)
