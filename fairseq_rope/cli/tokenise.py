"""``fairseq-rope tokenise``."""

from __future__ import annotations

import argparse
import sys

from ..text.filter import filter_file
from ..text.tokenise import MOSES_LANGUAGES, Tokeniser
from .arguments import add_filter_arguments, add_language_argument, finish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_language_argument(parser)
    parser.add_argument(
        "--split-hyphens", action="store_true", help="write well-known as well @-@ known"
    )
    parser.add_argument(
        "--no-escape", action="store_true", help="keep ' and other characters from becoming &apos;"
    )
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> None:
    tokeniser = Tokeniser(args.language, args.split_hyphens, escape=not args.no_escape)
    if args.language not in MOSES_LANGUAGES:
        print(
            f"tokenise: warning: Moses has no rules for {args.language} and takes the English ones",
            file=sys.stderr,
        )
    finish(filter_file("tokenise", tokeniser, args.input, args.output, args.workers), args)
