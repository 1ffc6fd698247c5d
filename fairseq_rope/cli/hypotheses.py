"""``fairseq-rope hypotheses``."""

from __future__ import annotations

import argparse
import sys

from ..text.generated import in_source_order, read_generated
from ..text.lines import open_outputs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", required=True, metavar="SRC", help="the lines to translate")
    parser.add_argument(
        "generated",
        metavar="GENERATED",
        help="what fairseq-interactive printed for all lines of SRC that are not blank",
    )
    parser.add_argument("output", nargs="?", default="-", metavar="OUTPUT", help="default: stdout")


def run(args: argparse.Namespace) -> None:
    number, skipped = 0, []
    generated = read_generated(args.generated)
    with open_outputs(args.output) as (output,):
        for number, text in enumerate(in_source_order(generated, args.source), 1):
            if text is None:
                skipped.append(str(number))
            output.write(f"{text or ''}\n")
    numbers = f": lines {', '.join(skipped)}, blank in the output" if skipped else ""
    print(f"hypotheses: {number:,} lines, {len(skipped)} skipped{numbers}", file=sys.stderr)
