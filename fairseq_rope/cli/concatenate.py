"""``fairseq-rope concatenate``."""

from __future__ import annotations

import argparse
import sys

from ..text.concatenate import concatenate_files
from .arguments import add_pair_arguments, finish, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sentences",
        type=positive,
        default=2,
        metavar="N",
        help="join so many consecutive lines, with spaces; the last line holds what is left "
        "(default: %(default)s)",
    )
    add_pair_arguments(parser)


def run(args: argparse.Namespace) -> None:
    report = concatenate_files("concatenate", args.sentences, args.inputs, args.outputs)
    finish(report, args)
    if left := report.read % args.sentences:
        print(
            f"concatenate: the last line holds {left} of {args.sentences} sentences",
            file=sys.stderr,
        )
