"""Running a step over files: line by line on one side, or pair by pair on both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, Optional

from .lines import PathLike, open_outputs, read_lines
from .parallel import LineFunction, map_lines
from .report import Report, with_progress

DropReason = Callable[[str, str], Optional[str]]


def filter_file(
    step: str,
    function: LineFunction,
    source: PathLike = "-",
    target: PathLike = "-",
    workers: int | None = None,
) -> Report:
    """Write ``function(line)`` for every line of ``source`` to ``target``, on all cores.

    ``-`` is standard input or output. ``target`` appears only when all of it is written.
    """
    report = Report(step)

    def counted(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            report.read += 1
            report.words_read += _count_words(line)
            yield line

    with open_outputs(target) as (output,):
        for line in with_progress(map_lines(function, counted(read_lines(source)), workers), step):
            report.written += 1
            report.words_written += _count_words(line)
            output.write(f"{line}\n")
    return report


def filter_pairs(
    step: str,
    reason_to_drop: DropReason,
    pairs: Iterable[tuple[str, str]],
    outputs: Sequence[PathLike],
) -> Report:
    """Write the line pairs for which ``reason_to_drop`` is None to two files.

    The files appear only when both are written. Raises ValueError if no pair is left.
    """
    report = Report(step)
    with open_outputs(*outputs) as (source_output, target_output):
        for source, target in with_progress(pairs, step):
            report.read += 1
            reason = reason_to_drop(source, target)
            if reason is not None:
                report.dropped[reason] += 1
                continue
            report.written += 1
            source_output.write(f"{source}\n")
            target_output.write(f"{target}\n")
        if not report.written:
            raise ValueError(f"{report}: nothing is left; is the input what it should be?")
    return report


def _count_words(line: str) -> int:
    return line.count(" ") + 1 if line else 0
