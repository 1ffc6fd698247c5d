"""``fairseq-rope score``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..scoring import FIGURES, paired_bootstrap, read_hypotheses, score, suspicions
from ..text.language import WITHOUT_SPACES
from ..text.lines import read_lines, require_standard_output
from .arguments import language
from .tokenise import warn_of_english_rules


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "hypotheses",
        nargs="+",
        metavar="HYP",
        help="detokenised text, or fairseq-generate's output; with several, each is also compared "
        "with the first by paired bootstrap",
    )
    parser.add_argument("--reference", required=True, metavar="REF", help="raw, one line each")
    parser.add_argument("--source-lang", type=language, required=True, metavar="XX")
    parser.add_argument("--target-lang", type=language, required=True, metavar="XX")
    parser.add_argument(
        "--figures",
        nargs="+",
        choices=FIGURES,
        help="default: all three for English-German, else sacrebleu and tokenised, which a "
        "language without spaces between words does not have",
    )
    parser.add_argument(
        "--force", action="store_true", help="allow compound-split for any pair of languages"
    )


def run(args: argparse.Namespace) -> None:
    require_standard_output()
    pair = (args.source_lang, args.target_lang)
    figures = _figures(args.figures, pair, args.force)
    if len(set(args.hypotheses)) < len(args.hypotheses):
        raise ValueError(f"`HYP` must be different files, but are {', '.join(args.hypotheses)}")
    references = list(read_lines(args.reference))
    systems = {path: read_hypotheses(path) for path in args.hypotheses}
    if args.target_lang in WITHOUT_SPACES:
        print(
            f"score: warning: {args.target_lang} has no spaces between words: TER, and BLEU "
            "without a tokeniser of its own (tok:13a), take sentences for words; chrF2 does not",
            file=sys.stderr,
        )
    if set(figures) & {"tokenised", "compound-split"}:
        warn_of_english_rules("score", args.target_lang)
    _warn(args.reference, references)
    for path, hypotheses in systems.items():
        _warn(path, hypotheses)
        lines = [f"  {figure}" for figure in score(hypotheses, references, pair, figures)]
        print(path, *lines, sep="\n")
    if len(systems) > 1:
        p_values, recipe = paired_bootstrap(systems, references, args.target_lang)
        for path, p_value in p_values.items():
            print(
                f"sacreBLEU of {path} against {args.hypotheses[0]}: p = {p_value:.4f}  [{recipe}]"
            )


def _figures(wanted: Sequence[str] | None, pair: tuple[str, str], force: bool) -> Sequence[str]:
    if wanted is None:
        unfit = set() if pair == ("en", "de") else {"compound-split"}
        if pair[1] in WITHOUT_SPACES:
            unfit.add("tokenised")
        return [name for name in FIGURES if name not in unfit]
    if "compound-split" in wanted and pair != ("en", "de") and not force:
        raise ValueError(
            f"`--figures compound-split` is made for en-de, but this is {'-'.join(pair)}; "
            "leave it out, or add `--force` and say so beside the figure"
        )
    return wanted


def _warn(path: str, lines: Sequence[str]) -> None:
    for suspicion in suspicions(lines):
        print(f"score: warning: {path}: {suspicion}", file=sys.stderr)
