"""Several sentences a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from .lines import PathLike, open_outputs, read_pairs
from .report import Report, with_progress

Pair = tuple[str, str]


def concatenate(pairs: Iterable[Pair], sentences: int) -> Iterator[Pair]:
    """Join every ``sentences`` consecutive line pairs to one, with a space between lines.

    The last pair holds what is left. Blank lines add nothing, not even a space, on their side.
    """
    iterator = iter(pairs)
    while group := list(islice(iterator, sentences)):
        source, target = (" ".join(filter(str.strip, lines)) for lines in zip(*group))
        yield source, target


def concatenate_files(
    step: str, sentences: int, inputs: Sequence[PathLike], outputs: Sequence[PathLike]
) -> Report:
    """Write the joined line pairs of two files to two files, which appear only when both are done.

    Raises ValueError if one input is longer than the other.
    """
    report = Report(step)

    def counted() -> Iterator[Pair]:
        for pair in with_progress(read_pairs(inputs), step):
            report.read += 1
            yield pair

    with open_outputs(*outputs) as files:
        for pair in concatenate(counted(), sentences):
            report.written += 1
            for file, line in zip(files, pair):
                file.write(f"{line}\n")
    return report
