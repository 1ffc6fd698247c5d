"""``fairseq-rope normalise``."""

from __future__ import annotations

import argparse

from ..text.filter import filter_file
from ..text.normalise import Normaliser
from .arguments import add_filter_arguments, add_language_argument, finish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_language_argument(parser)
    add_filter_arguments(parser)


def run(args: argparse.Namespace) -> None:
    normaliser = Normaliser(args.language)
    finish(filter_file("normalise", normaliser, args.input, args.output, args.workers), args)
