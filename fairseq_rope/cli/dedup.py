"""``fairseq-rope dedup``."""

from __future__ import annotations

import argparse

from ..text.dedup import drop_duplicates
from .arguments import add_pair_arguments, finish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_pair_arguments(parser)


def run(args: argparse.Namespace) -> None:
    finish(drop_duplicates("dedup", args.inputs, args.outputs), args)
