"""What is said of a translation beside its BLEU: how much it repeats itself, how long it is."""

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU

LONGEST_REPEATED = 4


class Quality(NamedTuple):
    bleu: float  # sacreBLEU, 0 to 100
    repetition: float  # share of repeated 4-grams, 0 to 1
    length: float  # words of the translation / words of the reference


def quality(hypotheses: Sequence[str], references: Sequence[str]) -> Quality:
    """Of detokenised lines; words of the length are sacreBLEU's tokens."""
    score = BLEU().corpus_score(list(hypotheses), [list(references)])
    return Quality(score.score, repetition_rate(hypotheses), score.sys_len / score.ref_len)


def signature() -> str:
    """sacreBLEU's recipe."""
    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


def repetition_rate(lines: Sequence[str], size: int = LONGEST_REPEATED) -> float:
    """The share of 4-grams of words that stand earlier in the same line too; 0 without any 4-gram.

    Words are what stands between spaces.
    """
    repeated = total = 0
    for line in lines:
        words = line.split()
        grams = [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]
        total += len(grams)
        repeated += len(grams) - len(set(grams))
    return repeated / total if total else 0.0
