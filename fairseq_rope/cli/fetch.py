"""``fairseq-rope fetch``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..text.fetch import fetch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="http, https or file URL, or a path")
    parser.add_argument("file", type=Path, metavar="FILE", help="what it becomes here")
    parser.add_argument(
        "--lock",
        type=Path,
        required=True,
        metavar="LOCK",
        help="hashes as sha256sum writes them; a file that is not in it yet is added",
    )


def run(args: argparse.Namespace) -> None:
    fetch(args.source, args.file, args.lock)
