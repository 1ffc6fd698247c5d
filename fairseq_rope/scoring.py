"""Scores of translations, each under a name of its own and with its recipe.

Three BLEUs of one output differ by up to two points. ``FIGURES`` keeps them apart:

- sacrebleu: sacreBLEU's BLEU, chrF2 and TER of the detokenised text, with signatures.
- tokenised: BLEU of the text after Moses's tokenizer.perl, computed as multi-bleu.perl does.
- compound-split: the same with hyphenated compounds split, as papers on WMT14 English-German do
  since Vaswani et al. (2017). It is higher, and made for that pair only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import count
from typing import Any, Callable, NamedTuple

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from .text.generated import HYPOTHESIS, best_hypotheses, is_generated
from .text.lines import PathLike, read_lines
from .text.segment.sentencepiece import MARK
from .text.tokenise import Tokeniser

COMPOUND = re.compile(r"(\S)-(\S)")

SPACED_STOP = re.compile(r"\w [.,]( |$)")
TOKENISED_SHARE = 0.2
"""Share of lines with a space before a comma or full stop above which a text looks tokenised."""


class Figure(NamedTuple):
    """A score in points (0 to 100, TER also above), never without its recipe."""

    name: str
    value: float
    recipe: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:.2f}  [{self.recipe}]"


def sacrebleu_figures(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> list[Figure]:
    """Return BLEU, chrF2 and TER of detokenised text; for TER less is better."""
    metrics = {"sacreBLEU": _sacrebleu(language), "chrF2": CHRF(), "TER": TER()}
    return [
        Figure(
            name, metric.corpus_score(hypotheses, [references]).score, str(metric.get_signature())
        )
        for name, metric in metrics.items()
    ]


def _sacrebleu(language: str) -> BLEU:
    try:
        return BLEU(trg_lang=language)
    except RuntimeError:
        raise ValueError(
            f"sacreBLEU's tokeniser for {language} is not installed; "
            f"`pip install 'sacrebleu[{language}]'`"
        ) from None


def tokenised_figures(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> list[Figure]:
    """Return the BLEU of both texts after Moses's tokeniser (hyphens not split)."""
    tokenise = Tokeniser(language, escape=False)
    value, recipe = _multi_bleu(map(tokenise, hypotheses), map(tokenise, references))
    return [Figure("tokenised BLEU", value, f"{_moses(language)}|{recipe}")]


def compound_split_figures(
    hypotheses: Sequence[str], references: Sequence[str], language: str
) -> list[Figure]:
    """Return the tokenised BLEU with the compounds of both sides split."""
    tokenise = Tokeniser(language, escape=False)
    sides = [[split_compounds(tokenise(line)) for line in s] for s in (hypotheses, references)]
    value, recipe = _multi_bleu(*sides)
    recipe = f"{_moses(language)}|compounds:split|{recipe}"
    return [Figure("tokenised BLEU, compounds split", value, recipe)]


FIGURES: dict[str, Callable[[Sequence[str], Sequence[str], str], list[Figure]]] = {
    "sacrebleu": sacrebleu_figures,
    "tokenised": tokenised_figures,
    "compound-split": compound_split_figures,
}


def split_compounds(line: str) -> str:
    """Write "a-b" as "a ##AT##-##AT## b", as tensor2tensor's get_ende_bleu.sh does."""
    return COMPOUND.sub(r"\1 ##AT##-##AT## \2", line)


def _multi_bleu(hypotheses: Iterable[str], references: Iterable[str]) -> tuple[float, str]:
    """Return what multi-bleu.perl computes, by sacrebleu, and sacrebleu's signature for it."""
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    value = metric.corpus_score(list(hypotheses), [list(references)]).score
    return value, str(metric.get_signature())


def _moses(language: str) -> str:
    return f"moses:{language}|sacremoses:{version('sacremoses')}"


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    pair: tuple[str, str],
    figures: Sequence[str] = ("sacrebleu", "tokenised", "compound-split"),
) -> list[Figure]:
    """Return the figures of one system, from detokenised text, one sentence an item.

    ``pair`` holds the source and target language, for example ``("en", "de")``. Raises ValueError
    if there is not one hypothesis for each reference.
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"there must be one hypothesis for each reference, but there are {len(hypotheses)} "
            f"hypotheses and {len(references)} references; are both of the same test set, whole?"
        )
    return [value for name in figures for value in FIGURES[name](hypotheses, references, pair[1])]


def read_hypotheses(path: PathLike) -> list[str]:
    """Read plain text, or the output of fairseq-generate in any order.

    Of the latter it takes the best hypothesis of each sentence, detokenised (D) where there is one.
    """
    lines = list(read_lines(path))
    by_number = best_hypotheses(lines)
    if not by_number or not is_generated(lines):
        return lines
    if missing := max(by_number) + 1 - len(by_number):
        first = next(number for number in count() if number not in by_number)
        raise ValueError(
            f"{path}: {missing} sentences are missing, the first is number {first} (from 0); "
            "generate them too, for example by raising --max-source-positions"
        )
    return [by_number[number] for number in range(len(by_number))]


def suspicions(lines: Sequence[str]) -> Iterator[str]:
    """Yield reasons why lines do not look like detokenised text, which a score should be of."""
    kinds = {
        "pieces of subword-nmt (@@)": re.compile("@@( |$)"),
        "pieces of sentencepiece (\u2581)": re.compile(MARK),
        "entities (such as &apos;)": re.compile("&(apos|quot|amp|lt|gt|#\\d+);"),
        "<unk>": re.compile("<unk>"),
        "fairseq's labels (H-0), taken for text": re.compile(f"^{HYPOTHESIS.pattern}", re.DOTALL),
    }
    for kind, pattern in kinds.items():
        if found := sum(bool(pattern.search(line)) for line in lines):
            yield f"{kind} on {found} lines"
    spaced = sum(bool(SPACED_STOP.search(line)) for line in lines)
    if spaced > TOKENISED_SHARE * len(lines):
        yield f"a space before a comma or full stop on {spaced} lines: still tokenised?"
    if blank := sum(not line.strip() for line in lines):
        yield f"{blank} blank lines"


def paired_bootstrap(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], language: str
) -> tuple[dict[str, float], str]:
    """Return by system the p-value of its BLEU difference from the first system, and the recipe.

    sacreBLEU's paired bootstrap resampling (Koehn, 2004) with 1,000 samples. p is 1 where nothing
    can be significant, equal scores or a single sentence: there all samples have one difference,
    and sacreBLEU, which counts samples above it, finds none and returns 1/1001.
    """
    metrics = {"BLEU": _sacrebleu(language)}
    test = PairedTest(list(systems.items()), metrics, [references], test_type="bs")
    signatures, results = test()
    results_of_bleu: Any = results["BLEU"]
    first, *others = results_of_bleu
    p_values = [
        1.0 if result.score == first.score or len(references) == 1 else result.p_value
        for result in others
    ]
    return dict(zip(list(systems)[1:], p_values)), str(signatures["BLEU"])
