"""``fairseq-rope clean``."""

from __future__ import annotations

import argparse

from ..text.clean import Cleaner
from ..text.filter import filter_pairs
from ..text.lines import read_pairs
from .arguments import add_pair_arguments, finish, positive, ratio


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-words",
        type=positive,
        default=Cleaner.max_words,
        metavar="N",
        help="drop pairs with a longer side (default: %(default)s)",
    )
    parser.add_argument(
        "--max-ratio",
        type=ratio,
        default=Cleaner.max_ratio,
        metavar="R",
        help="drop pairs one side of which has more than R times the words (default: %(default)s)",
    )
    add_pair_arguments(parser)


def run(args: argparse.Namespace) -> None:
    cleaner = Cleaner(args.max_words, args.max_ratio)
    finish(filter_pairs("clean", cleaner, read_pairs(args.inputs), args.outputs), args)
