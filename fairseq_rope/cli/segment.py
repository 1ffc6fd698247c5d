"""``fairseq-rope segment learn | apply | undo``."""

from __future__ import annotations

import argparse
import sys

from ..text.filter import filter_file
from ..text.segment import SEGMENTERS, SubwordNmt, learn
from .arguments import add_filter_arguments, finish, positive

SUSPICIOUS_PIECES = 3.0
"""Pieces per word; a BPE of 6,000 and more gives 1.1 to 1.6 on the text it was learnt from."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="learn|apply|undo")

    learner = actions.add_parser("learn", help="learn one segmentation from several files")
    _add_segmenter(learner)
    learner.add_argument("inputs", nargs="+", metavar="FILE", help="text, one sentence a line")
    learner.add_argument("--model", required=True, help="file to write")
    learner.add_argument(
        "--size",
        type=positive,
        required=True,
        help="pieces (sentencepiece) or merges (subword-nmt)",
    )
    learner.add_argument(
        "--vocabularies",
        nargs="+",
        default=[],
        metavar="FILE",
        help="also write each input's pieces and their counts, one file for each input",
    )

    applier = actions.add_parser("apply", help="split words into pieces")
    _add_segmenter(applier)
    applier.add_argument("--model", required=True, help="what `segment learn` wrote")
    applier.add_argument(
        "--vocabulary", help="subword-nmt: use only pieces of this file of `learn --vocabularies`"
    )
    applier.add_argument(
        "--vocabulary-threshold",
        type=positive,
        default=50,
        metavar="N",
        help="... that it counts at least this often (default: %(default)s)",
    )
    add_filter_arguments(applier)

    undoer = actions.add_parser("undo", help="join pieces to words")
    _add_segmenter(undoer)
    add_filter_arguments(undoer)


def run(args: argparse.Namespace) -> None:
    kind = SEGMENTERS[args.segmenter]
    if args.action == "learn":
        learn(args.segmenter, args.inputs, args.size, args.model, args.vocabularies)
    elif args.action == "undo":
        finish(filter_file("undo", kind.undo, args.input, args.output, args.workers), args)
    else:
        _apply(args)


def _apply(args: argparse.Namespace) -> None:
    if not args.vocabulary:
        segmenter = SEGMENTERS[args.segmenter](args.model)
    elif args.segmenter == "subword-nmt":
        segmenter = SubwordNmt(args.model, args.vocabulary, args.vocabulary_threshold)
    else:
        raise ValueError(
            f"`--vocabulary` is {args.vocabulary}, but {args.segmenter} knows no such restriction; "
            "leave it out, or use `--segmenter subword-nmt`"
        )
    report = filter_file("segment", segmenter, args.input, args.output, args.workers)
    finish(report, args)
    print(f"segment: {report.growth:.2f} pieces per word", file=sys.stderr)
    if report.growth > SUSPICIOUS_PIECES:
        print(
            f"segment: warning: so many pieces per word mean that {args.model} was learnt on other "
            "text, or is very small",
            file=sys.stderr,
        )


def _add_segmenter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--segmenter",
        choices=SEGMENTERS,
        default="sentencepiece",
        help="default: %(default)s",
    )
