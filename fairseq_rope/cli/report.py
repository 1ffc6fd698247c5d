"""``fairseq-rope report``."""

from __future__ import annotations

import argparse

from ..text.lines import require_standard_output
from ..text.report import format_reports, read_reports


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what the steps wrote with --report")


def run(args: argparse.Namespace) -> None:
    require_standard_output()
    print(format_reports(read_reports(args.file)))
