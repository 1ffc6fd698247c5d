"""``fairseq-rope hypotheses``."""

from __future__ import annotations

import argparse
import os
import sys

from ..text.generated import best_hypotheses, in_source_order
from ..text.lines import STANDARD_STREAM, open_outputs, read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="SRC", help="the lines to translate")
    parser.add_argument(
        "generated",
        metavar="GENERATED",
        help="what fairseq-interactive printed for all lines of SRC that are not blank",
    )
    parser.add_argument("output", nargs="?", default="-", metavar="OUTPUT", help="default: stdout")


def run(args: argparse.Namespace) -> None:
    if args.output != STANDARD_STREAM and os.path.realpath(args.output) in (
        os.path.realpath(args.source),
        os.path.realpath(args.generated),
    ):
        raise ValueError(f"`OUTPUT` must be a file of its own, but {args.output} is read here")
    generated = best_hypotheses(read_lines(args.generated))
    source = list(read_lines(args.source))
    try:
        hypotheses = in_source_order(generated, source)
    except ValueError as error:
        raise ValueError(f"{args.generated}, for {args.source}: {error}") from None
    skipped = [str(number) for number, text in enumerate(hypotheses, 1) if text is None]
    with open_outputs(args.output) as (output,):
        output.writelines(f"{text or ''}\n" for text in hypotheses)
    numbers = f": lines {', '.join(skipped)}, blank in the output" if skipped else ""
    print(
        f"hypotheses: {len(hypotheses):,} lines, {len(skipped)} skipped{numbers}", file=sys.stderr
    )
