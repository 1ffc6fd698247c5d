"""Running a step over files: line by line on one side, or pair by pair on both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fairseq_rope.text.lines import PathLike, open_outputs, read_lines
from fairseq_rope.text.parallel import LineFunction, map_lines
from fairseq_rope.text.report import Report, with_progress


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


def _count_words(line: str) -> int:
    return line.count(" ") + 1 if line else 0
