"""``fairseq-rope check-data``."""

from __future__ import annotations

import argparse

from ..text.check import CorpusCheck, fix_corpus
from ..text.lines import require_files
from .arguments import add_report_arguments, finish, language


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "The exit code is 0 for a usable corpus, whatever the warnings, and else 1; with --fix it "
        "is that of the corpus written."
    )
    parser.add_argument("source", metavar="SRC")
    parser.add_argument("target", metavar="TGT")
    parser.add_argument(
        "--languages",
        nargs=2,
        type=language,
        metavar="XX",
        help="what SRC and TGT should be, such as en de",
    )
    parser.add_argument(
        "--fix",
        nargs=2,
        metavar="OUT",
        help="write a corpus without these faults: characters mended, faulty pairs dropped",
    )
    add_report_arguments(parser)


def run(args: argparse.Namespace) -> int:
    require_files(args.fix or ())
    check = CorpusCheck([args.source, args.target], args.languages)
    _print_line_counts(check)
    for finding in check.findings():
        kind = "ERROR" if finding.fatal else "warning"
        print(f"{kind}  {finding.count:,} x {finding.problem}; first: {finding.first}")
    print("usable" if check.usable else "not usable as it is")
    if args.fix:
        finish(fix_corpus([args.source, args.target], args.fix), args)
        check = CorpusCheck(args.fix, args.languages)
        print("what is written:", "usable" if check.usable else "not usable either")
    return 0 if check.usable else 1


def _print_line_counts(check: CorpusCheck) -> None:
    rows = zip(check.paths, check.lines, check.lines_to_open, check.lines_to_splitlines)
    for path, lines, to_open, to_splitlines in rows:
        print(
            f"{path}: {lines:,} lines end in LF (wc, sacreBLEU, Moses), {to_open:,} in LF or CR "
            f"(fairseq), {to_splitlines:,} as splitlines counts (subword-nmt)"
        )
