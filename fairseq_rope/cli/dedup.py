"""``fairseq-rope dedup``."""

from __future__ import annotations

import argparse

from fairseq_rope.cli.arguments import add_pair_arguments, finish
from fairseq_rope.text.dedup import drop_duplicates


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_pair_arguments(parser)


def run(args: argparse.Namespace) -> None:
    finish(drop_duplicates("dedup", args.inputs, args.outputs), args)
