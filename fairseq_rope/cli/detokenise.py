"""``fairseq-rope detokenise``."""

from __future__ import annotations

import argparse

from fairseq_rope.cli.arguments import add_filter_arguments, add_language_argument, finish
from fairseq_rope.text.filter import filter_file
from fairseq_rope.text.tokenise import Detokeniser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_language_argument(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> None:
    detokeniser = Detokeniser(args.language)
    finish(filter_file("detokenise", detokeniser, args.input, args.output, args.workers), args)
