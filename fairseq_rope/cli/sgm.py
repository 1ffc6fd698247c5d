"""``fairseq-rope sgm``."""

from __future__ import annotations

import argparse

from ..text.lines import open_outputs
from ..text.report import Report
from ..text.sgm import read_sgm
from .arguments import add_language_argument, add_report_arguments, finish


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_language_argument(parser)
    parser.add_argument("input", metavar="INPUT", help="a -src or -ref file")
    parser.add_argument("output", nargs="?", default="-", metavar="OUTPUT", help="default: stdout")
    add_report_arguments(parser)


def run(args: argparse.Namespace) -> None:
    segments = read_sgm(args.input, args.language)
    with open_outputs(args.output) as (output,):
        output.writelines(f"{segment}\n" for segment in segments)
    finish(Report("sgm", read=len(segments), written=len(segments)), args)
