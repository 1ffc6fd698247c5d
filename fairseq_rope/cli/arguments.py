"""What the filters among the subcommands share: where to read, where to write, how to report."""

from __future__ import annotations

import argparse
import re
import sys
from math import inf

from ..text.report import Report


def positive(text: str) -> int:
    """A whole number above 0, as argparse's ``type``."""
    if not re.fullmatch(r"0*[1-9]\d{0,8}", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 999,999,999: {text!r}")
    return int(text)


def language(text: str) -> str:
    """A language's code, as argparse's ``type``."""
    if not re.fullmatch("[a-z]{2,3}", text):
        raise argparse.ArgumentTypeError(
            f"must be two or three small letters, such as en or de: {text!r}"
        )
    return text


def ratio(text: str) -> float:
    """A number of 1 or more, as argparse's ``type``."""
    number = float(text)
    if not 1 <= number < inf:
        raise argparse.ArgumentTypeError(f"must be a number of 1 or more: {text!r}")
    return number


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Add INPUT, OUTPUT (standard input and output by default) and the options of every step."""
    parser.add_argument("input", nargs="?", default="-", metavar="INPUT", help="default: stdin")
    parser.add_argument("output", nargs="?", default="-", metavar="OUTPUT", help="default: stdout")
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="processes (default: one for each core)"
    )
    add_report_arguments(parser)


def add_pair_arguments(parser: argparse.ArgumentParser) -> None:
    """Add two input files, two output files and the options of every step."""
    parser.add_argument("inputs", nargs=2, metavar="IN", help="the corpus, source and target")
    parser.add_argument("outputs", nargs=2, metavar="OUT", help="what is kept of each")
    add_report_arguments(parser)


def add_language_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--language",
        type=language,
        required=True,
        metavar="XX",
        help="two-letter code, such as en or de",
    )


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options by which a step leaves its figures for `fairseq-rope report`."""
    parser.add_argument(
        "--report", metavar="FILE", help="append the figures, for `fairseq-rope report FILE`"
    )
    parser.add_argument("--name", help="what the step is called there, for example 'segment en'")


def finish(report: Report, args: argparse.Namespace) -> None:
    """Tell what the step did, on standard error and in the report file if there is one."""
    report.step = args.name or report.step
    print(report, file=sys.stderr)
    if args.report:
        report.append_to(args.report)
