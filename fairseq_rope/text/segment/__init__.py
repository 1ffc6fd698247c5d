"""Joint byte-pair encoding of words into pieces, with sentencepiece or subword-nmt.

Both segmenters have one interface::

    learn("sentencepiece", ["train.en", "train.de"], size=6000, model="bpe.model")
    segmenter = SEGMENTERS["sentencepiece"]("bpe.model")
    segmenter("Ein Mann geht.")             # "▁Ein ▁Mann ▁geht ."
    segmenter.undo("▁Ein ▁Mann ▁geht .")    # "Ein Mann geht."
    filter_file("segment", segmenter, "train.en", "train.bpe.en")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..lines import PathLike, open_outputs, read_lines
from ..report import with_progress
from .segmenter import Segmenter
from .sentencepiece import Sentencepiece
from .subword_nmt import SubwordNmt

SEGMENTERS: dict[str, type[Segmenter]] = {
    "sentencepiece": Sentencepiece,
    "subword-nmt": SubwordNmt,
}


def learn(
    segmenter: str,
    paths: Sequence[PathLike],
    size: int,
    model: PathLike,
    vocabularies: Sequence[PathLike] = (),
) -> None:
    """Learn one segmentation from all files and write it to ``model``.

    ``size`` is the number of pieces for sentencepiece and of merges for subword-nmt.
    ``vocabularies``, if given, are one file for each of ``paths``: its pieces and their counts,
    most frequent first. Memory grows with the number of distinct words, not with the lines.
    """
    if vocabularies and len(vocabularies) != len(paths):
        raise ValueError(
            f"`vocabularies` must be one for each of the {len(paths)} input files, "
            f"but are {len(vocabularies)}"
        )
    kind = SEGMENTERS[segmenter]
    counts = [_count_words(kind, path) for path in paths]
    kind.learn(sum(counts, Counter()), size, model)
    if vocabularies:
        learnt = kind(model)
        with open_outputs(*vocabularies) as outputs:
            for words, output in zip(counts, outputs):
                for piece, count in learnt.count_pieces(words).most_common():
                    output.write(f"{piece} {count}\n")


def _count_words(kind: type[Segmenter], path: PathLike) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in with_progress(read_lines(path), f"count words of {path}"):
        counts.update(kind.words(line))
    if not counts:
        raise ValueError(f"{path} holds no words to learn from")
    return counts
