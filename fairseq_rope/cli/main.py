"""The entry point: finds the subcommand and turns a user's mistake into one line and an exit code.

A subcommand is one file of this folder with ``add_arguments(parser)`` and
``run(args) -> int | None`` (an exit code), and one line in ``SUBCOMMANDS``.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from errno import ENOSPC
from importlib import import_module
from types import FrameType

DESCRIPTION = "From raw text to a scored translation: corpus steps and scores for fairseq."

SUBCOMMANDS = {
    "fetch": "download an archive, resuming, and check it against a lock file",
    "sgm": "read a WMT test set in SGML, one segment a line",
    "normalise": "write Unicode, white space and punctuation in one way",
    "tokenise": "separate words and punctuation as Moses does",
    "detokenise": "undo tokenise",
    "clean": "drop sentence pairs that are empty, very long or very unequal",
    "dedup": "drop repeated sentence pairs",
    "concatenate": "join several sentence pairs to one line each",
    "segment": "learn, apply or undo joint byte-pair encoding",
    "check-data": "say what is wrong with a parallel corpus, and mend it",
    "average": "write one checkpoint with the mean weights of several",
    "hypotheses": "put fairseq's hypotheses into the order of the source",
    "score": "score translations: sacreBLEU, tokenised BLEU, compound-split BLEU",
    "report": "print a table of what the steps did",
}
"""Name and purpose; ``check-data`` stands in ``check_data.py``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 for a failure, 2 for wrong usage."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    arguments = sys.argv[1:] if arguments is None else arguments
    args = _parser(arguments).parse_args(arguments)
    try:
        return args.run(args) or 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # The reader has had enough. Standard output is flushed once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, MemoryError) as error:
        print(f"fairseq-rope {args.subcommand}: error: {_explain(error)}", file=sys.stderr)
        return 1


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser; only the subcommand that is called gets imported."""
    parser = argparse.ArgumentParser(prog="fairseq-rope", description=DESCRIPTION)
    subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    for name, purpose in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=purpose, description=f"{purpose}.")
        if name in arguments:
            module = import_module(f"fairseq_rope.cli.{name.replace('-', '_')}")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    # Unlike the default, leaves through the `finally` blocks that remove unfinished files.
    sys.exit(128 + number)


def _explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == ENOSPC:
        return f"{error}; free some space and run the step again, nothing half-written is left"
    return str(error) or type(error).__name__  # Python's MemoryError has no text
