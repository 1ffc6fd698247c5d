"""Reading and writing lines of text.

A line ends at LF and nowhere else, which is how ``wc -l``, sacreBLEU and Moses count. CR, NEL,
U+2028 and the other characters at which Python's ``splitlines`` or ``open`` would break are
ordinary characters here.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TextIO, Union

PathLike = Union[str, Path]
STANDARD_STREAM = "-"


@contextmanager
def open_bytes(path: PathLike) -> Iterator[Iterable[bytes]]:
    """Open a file, a ``.gz`` file, or standard input (``-``) to read lines up to and with LF."""
    if str(path) == STANDARD_STREAM:
        yield sys.stdin.buffer
        return
    with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as stream:
        try:
            yield stream
        except EOFError:
            raise ValueError(f"{path}: the archive ends too early; fetch the file again") from None


def read_lines(path: PathLike, errors: str = "strict") -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their LF.

    Raises ValueError with file, line and byte (both from 1) at the first invalid byte, unless
    ``errors`` names another of Python's ways to decode it.
    """
    with open_bytes(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                yield raw.decode("utf-8", errors).rstrip("\n")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}: line {number}, byte {error.start + 1}: {raw[error.start]:#04x} "
                    "is not UTF-8; convert the file with iconv, or drop such lines with "
                    "`fairseq-rope check-data --fix`"
                ) from None


def count_lines(path: PathLike) -> int:
    """Count lines; a last line without LF counts, unlike in ``wc -l``."""
    with open_bytes(path) as stream:
        return sum(1 for _ in stream)


def read_pairs(paths: Sequence[PathLike], errors: str = "strict") -> Iterator[tuple[str, str]]:
    """Yield the line pairs of a corpus in two files, decoded as by ``read_lines``.

    Raises ValueError with both counts when one file ends before the other.
    """
    source, target = paths
    lines = zip_longest(read_lines(source, errors), read_lines(target, errors))
    for source_line, target_line in lines:
        if source_line is None or target_line is None:
            raise ValueError(
                f"{source} has {count_lines(source)} lines, "
                f"but {target} has {count_lines(target)}; "
                "find where they part with `fairseq-rope check-data`"
            )
        yield source_line, target_line


@contextmanager
def replacing(*files: PathLike) -> Iterator[list[Path]]:
    """Yield hidden paths that take the names of ``files``, all of them, when the block succeeds.

    On any failure they are removed and the files stay as they were.
    """
    finals = [Path(file) for file in files]
    partials = [final.with_name(f".{final.name}.{os.getpid()}") for final in finals]
    for final in finals:
        final.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partials
        for partial, final in zip(partials, finals):
            os.replace(partial, final)
    finally:
        for partial in partials:
            partial.unlink(missing_ok=True)


@contextmanager
def open_outputs(*paths: PathLike) -> Iterator[list[TextIO]]:
    """Open UTF-8 files for writing that appear, all of them, only when the block succeeds.

    ``-`` is standard output, which cannot be taken back.
    """
    if STANDARD_STREAM in map(str, paths):
        output = sys.stdout.fileno()
        with open(output, "w", encoding="utf-8", newline="\n", closefd=False) as stream:
            yield [stream] * len(paths)
        return
    with replacing(*paths) as partials, ExitStack() as stack:
        yield [
            stack.enter_context(open(partial, "w", encoding="utf-8", newline="\n"))
            for partial in partials
        ]
