"""The data of benchmarks.positions beside the pipeline's: long test lines, short training lines."""

from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairseq_rope.text.concatenate import concatenate
from fairseq_rope.text.lines import open_outputs, read_lines, read_pairs

from .pipeline import run_command

SENTENCES = (1, 2, 3, 4, 8)
"""Sentences a line of the test sets."""

SHORT_SHARE = 0.7
BINS = (SHORT_SHARE, 0.85)
"""Shares of the training data, from the shortest source on, whose ends part the test set."""


class Sets(NamedTuple):
    """The test sets one after the other, so that a model is loaded once for all."""

    sources: list[str]
    references: list[str]
    ends: list[int]  # of each test set

    def parts(self, lines: list[str]) -> list[list[str]]:
        """Lines in the order of `sources`, a list for each test set."""
        if len(lines) != self.ends[-1]:
            raise ValueError(f"{len(lines)} lines for {self.ends[-1]} of the test sets")
        starts = [0, *self.ends]
        return [lines[a:b] for a, b in zip(starts, self.ends)]


def joined_sets(work: Path) -> Sets:
    """The raw test text with 1, 2, ... consecutive sentences a line, on both sides."""
    pairs = list(read_pairs((work / "text" / "test.en", work / "text" / "test.de")))
    sets = [list(concatenate(pairs, sentences)) for sentences in SENTENCES]
    sources, references = zip(*(pair for lines in sets for pair in lines))
    return Sets(list(sources), list(references), list(accumulate(map(len, sets))))


def write_sets(lines: Sets, work: Path) -> None:
    """Write `test-all.en`, all sets, and `test-single.en`, the first."""
    with open_outputs(work / "test-all.en", work / "test-single.en") as (every, single):
        every.writelines(f"{line}\n" for line in lines.sources)
        single.writelines(f"{line}\n" for line in lines.sources[: lines.ends[0]])


def length_limits(work: Path) -> list[int]:
    """Pieces of the source at the ends of BINS."""
    lengths = [line.count(" ") + 1 for line in read_lines(work / "pieces" / "train.en")]
    return [int(limit) for limit in np.quantile(lengths, BINS, method="lower")]


def length_bins(work: Path) -> list[list[int]]:
    """Numbers of the single test lines by the pieces of their source, a list for each bin."""
    limits = length_limits(work)
    bins: list[list[int]] = [[] for _ in (*limits, None)]
    for number, line in enumerate(read_lines(work / "pieces" / "test.en")):
        bins[int(np.searchsorted(limits, line.count(" ") + 1))].append(number)
    return bins


def prepare_short(work: Path) -> Path:
    """Binarise the training pairs with the shorter sources, with the same vocabulary.

    Returns:
        a folder with `data`, as that of prepare.sh
    """
    folder, limit = work / "short", length_limits(work)[0]
    data = folder / "data"
    if data.exists():
        return folder
    inputs = [work / "pieces" / f"train.{language}" for language in ("en", "de")]
    outputs = [folder / path.name for path in inputs]
    with open_outputs(*outputs) as files:
        for pair in read_pairs(inputs):
            if pair[0].count(" ") < limit:
                for file, line in zip(files, pair):
                    file.write(f"{line}\n")
    run_command(
        [
            *("fairseq-preprocess", "--source-lang", "en", "--target-lang", "de"),
            *("--joined-dictionary", "--srcdict", str(work / "data" / "dict.en.txt")),
            *("--trainpref", str(folder / "train"), "--validpref", str(work / "pieces" / "valid")),
            *("--destdir", f"{data}.part"),
        ],
        folder / "preprocess.log",
    )
    Path(f"{data}.part").rename(data)
    return folder
