"""What is wrong with a parallel corpus, before it costs GPU time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from .dedup import first_occurrences
from .filter import filter_pairs
from .language import count_function_words, other_language
from .lines import PathLike, read_lines, read_pairs, require_files
from .normalise import normalise_space
from .report import Report, with_progress
from .segment.segmenter import RESERVED

INVALID = "invalid UTF-8"
BREAKS = "characters at which other tools break lines (CR, NEL, U+2028, ...)"
FATAL = frozenset([INVALID, BREAKS])

BREAK = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
SURROGATE = re.compile("[\ud800-\udfff]")
"""What Python's "surrogateescape" makes of an invalid byte."""

MAX_WORDS, MAX_CHARACTERS, MAX_RATIO = 250, 2500, 9
LANGUAGE_SAMPLE = 20_000
"""Lines from which the language is guessed."""


@dataclass(frozen=True)
class Finding:
    """One kind of fault: how often, where first, and whether the corpus is unusable by it."""

    problem: str
    count: int
    first: str
    fatal: bool


class CorpusCheck:
    """The faults of two files that should be line by line translations of each other.

    ``languages``, if given, are what the two sides should be, for example ``("en", "de")``.
    """

    def __init__(self, paths: Sequence[PathLike], languages: Sequence[str] | None = None) -> None:
        require_files(paths)
        self.paths, self.languages = list(map(str, paths)), languages
        self.lines = [0, 0]
        self.lines_to_open = [0, 0]
        self.lines_to_splitlines = [0, 0]
        self.suspicious: str | None = None
        self.identical = 0
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._function_words: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
        self._read()

    @property
    def usable(self) -> bool:
        return not any(finding.fatal for finding in self.findings())

    def findings(self) -> Iterator[Finding]:
        """Yield the faults, those of the whole corpus first."""
        if min(self.lines) == 0:
            yield Finding("empty corpus", 1, f"{self.lines[0]} and {self.lines[1]} lines", True)
        elif self.lines[0] != self.lines[1]:
            counts = f"unequal line counts, {self.lines[0]:,} and {self.lines[1]:,}"
            yield Finding(counts, 1, self.suspicious or "no pair looks odd", True)
        elif self.identical > self.lines[0] / 2:
            paths = " and ".join(self.paths)
            yield Finding("source and target are mostly the same", self.identical, paths, True)
        for path, stated, words in zip(self.paths, self.languages or (), self._function_words):
            if other := other_language(words, stated):
                yield Finding(f"not {stated} but {other} by its frequent words", 1, path, True)
        for problem, count in self._counts.most_common():
            yield Finding(problem, count, self._first[problem], problem in FATAL)

    def _read(self) -> None:
        sides = [read_lines(path, "surrogateescape") for path in self.paths]
        for number, pair in enumerate(with_progress(zip_longest(*sides), "check-data"), 1):
            for side, line in enumerate(pair):
                if line is not None:
                    self._read_line(side, number, line)
            if None not in pair:
                self._read_pair(number, *pair)
        if self.lines[0] == self.lines[1]:
            occurs_first = first_occurrences(read_pairs(self.paths, "surrogateescape"))
            if not occurs_first.all():
                first = int(occurs_first.argmin()) + 1
                self._counts["repeated pairs"] = int((~occurs_first).sum())
                self._first["repeated pairs"] = f"line {first}"

    def _read_line(self, side: int, number: int, line: str) -> None:
        self.lines[side] += 1
        # A CR before the LF belongs to one line end, CRLF.
        self.lines_to_open[side] += 1 + line[:-1].count("\r")
        self.lines_to_splitlines[side] += max(1, len(line.splitlines()))
        for problem in line_problems(line):
            where = f"{self.paths[side]}, line {number}"
            if problem is INVALID:
                valid = SURROGATE.split(line, maxsplit=1)[0]
                where += f", byte {len(valid.encode()) + 1}"
            self._note(problem, where)
        if self.languages and number <= LANGUAGE_SAMPLE:
            count_function_words(line, self._function_words[side])

    def _read_pair(self, number: int, source: str, target: str) -> None:
        if source == target and source.strip():
            self.identical += 1
            self._note("source and target the same", f"line {number}")
        if problem := length_problem(source, target):
            self._note(problem, f"line {number}")
        short, long = sorted((len(source.strip()), len(target.strip())))
        if self.suspicious is None and (long > 3 * short + 20 or (long and not short)):
            self.suspicious = f"suspicious pair, line {number}: {source[:60]!r} | {target[:60]!r}"

    def _note(self, problem: str, where: str) -> None:
        self._counts[problem] += 1
        self._first.setdefault(problem, where)


def line_problems(line: str) -> Iterator[str]:
    """Yield what is wrong with one line (decoded with "surrogateescape")."""
    if not line.strip():
        yield "empty lines"
    if not RESERVED.isdisjoint(line.split()):
        yield f"symbols that fairseq reserves ({' '.join(sorted(RESERVED))})"
    if line.isprintable():
        return
    if SURROGATE.search(line):
        yield INVALID
    if line.endswith("\r"):
        yield "CRLF line ends"
    odd = set(line.rstrip("\r")) - {" "}
    if BREAK.search("".join(odd)):
        yield BREAKS
    elif any(char.isspace() for char in odd):
        yield "white space other than the plain space, at which fairseq breaks words"
    if any(not char.isprintable() and not char.isspace() for char in odd):
        yield "characters without a glyph (NUL, byte order mark, soft hyphen, ...)"


def length_problem(source: str, target: str) -> str | None:
    """Return what is extreme about the lengths of a pair, or None.

    Words alone say nothing where a language has no spaces between them (Chinese, Japanese, Thai),
    so a ratio is extreme only if it is so in words and in characters.
    """
    words = sorted((len(source.split()), len(target.split())))
    characters = sorted((len(source), len(target)))
    if words[0] == 0:
        return None
    if words[1] > MAX_WORDS or characters[1] > MAX_CHARACTERS:
        return f"longer than {MAX_WORDS} words or {MAX_CHARACTERS:,} characters"
    if all(long > MAX_RATIO * short for short, long in (words, characters)):
        return f"length ratio above {MAX_RATIO}, in words and in characters"
    return None


def fix_corpus(inputs: Sequence[PathLike], outputs: Sequence[PathLike]) -> Report:
    """Write a corpus in which ``CorpusCheck`` finds no fault; needs equal line counts.

    White space and characters without a glyph are normalised in every line. Pairs that no such
    change makes sound are dropped. Raises ValueError if none is left.
    """
    require_files(inputs)
    occurs_first = iter(first_occurrences(_normalised_pairs(inputs)))

    def reason_to_drop(source: str, target: str) -> str | None:
        is_first = next(occurs_first)
        problems = [*line_problems(source), *line_problems(target)]
        if problems:
            return problems[0]
        if source == target:
            return "source and target the same"
        return length_problem(source, target) or (None if is_first else "repeated pairs")

    return filter_pairs("check-data --fix", reason_to_drop, _normalised_pairs(inputs), outputs)


def _normalised_pairs(inputs: Sequence[PathLike]) -> Iterator[tuple[str, str]]:
    for pair in read_pairs(inputs, "surrogateescape"):
        # Normalising would hide the invalid bytes.
        source, target = (s if SURROGATE.search(s) else normalise_space(s) for s in pair)
        yield source, target
