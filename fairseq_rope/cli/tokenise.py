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
    warn_of_english_rules("tokenise", args.language)
    finish(filter_file("tokenise", tokeniser, args.input, args.output, args.workers), args)


def warn_of_english_rules(subcommand: str, language: str) -> None:
    """Say so on standard error where Moses's tokeniser does not know the language."""
    if language not in MOSES_LANGUAGES:
        print(
            f"{subcommand}: warning: Moses has no rules for {language} and takes the English ones",
            file=sys.stderr,
        )
