"""Reading and writing lines of text.

A line ends at LF and nowhere else, which is how ``wc -l``, sacreBLEU and Moses count. CR, NEL,
U+2028 and the other characters at which Python's ``splitlines`` or ``open`` would break are
ordinary characters here.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
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
        if sys.stdin is None:
            raise ValueError("standard input is closed; name a file")
        yield sys.stdin.buffer
        return
    with gzip.open(path) if str(path).endswith(".gz") else open(path, "rb") as stream:
        try:
            yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path}: damaged or no gzip file ({error}); get it again, or rename it if it is "
                "plain text"
            ) from None


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


def require_files(paths: Iterable[PathLike]) -> None:
    """Raise ValueError for what cannot be read a second time: standard input, a pipe, a device."""
    for path in paths:
        if str(path) == STANDARD_STREAM or _is_stream(Path(path)):
            raise ValueError(f"{path} is read twice, so it must be a file; write it to one first")


def require_standard_output() -> None:
    """Raise ValueError where Python's print would silently print nothing."""
    if sys.stdout is None:
        raise ValueError("standard output is closed; name a file, or leave it open")


@contextmanager
def replacing(*files: PathLike) -> Iterator[list[Path]]:
    """Yield hidden paths that take the names of ``files``, all of them, when the block succeeds.

    On any failure they are removed and the files stay as they were. A device or a pipe stands for
    itself: what is written to it cannot be taken back. Raises ValueError if two are the same file.
    """
    finals = [_final(file) for file in files]
    regular = [final for final in finals if not _is_stream(final)]
    if len(set(regular)) < len(regular):
        raise ValueError(f"outputs must be different files, but are {', '.join(map(str, files))}")
    partials = {final: final.with_name(f".{final.name}.{os.getpid()}") for final in regular}
    for final in regular:
        final.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield [partials.get(final, final) for final in finals]
        for final, partial in partials.items():
            os.replace(partial, final)
    finally:
        for partial in partials.values():
            partial.unlink(missing_ok=True)


@contextmanager
def open_outputs(*paths: PathLike) -> Iterator[list[TextIO]]:
    """Open UTF-8 files for writing that appear, all of them, only when the block succeeds.

    A name that ends in ``.gz`` is compressed. ``-`` is standard output, for a single output; it
    cannot be taken back.
    """
    if STANDARD_STREAM in map(str, paths):
        if len(paths) > 1:
            raise ValueError(f"standard output (-) takes one side only; name {len(paths)} files")
        require_standard_output()
        output = sys.stdout.fileno()
        with open(output, "w", encoding="utf-8", newline="\n", closefd=False) as stream:
            yield [stream]
        return
    with replacing(*paths) as partials, ExitStack() as stack:
        openers = [gzip.open if str(path).endswith(".gz") else open for path in paths]
        yield [
            stack.enter_context(opener(partial, "wt", encoding="utf-8", newline="\n"))
            for opener, partial in zip(openers, partials)
        ]


def _final(file: PathLike) -> Path:
    """Return where a file really lies; a symbolic link goes on pointing there."""
    path = Path(file)
    if path.is_dir():
        raise IsADirectoryError(f"{file} is a folder; name a file")
    return path if _is_stream(path) else Path(os.path.realpath(path))


def _is_stream(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()
