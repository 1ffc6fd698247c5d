"""``fairseq-rope average``: one checkpoint with the mean of several checkpoints' weights.

The options are those of the ``scripts/average_checkpoints.py`` in fairseq's repository, which its
package leaves out.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import torch

from ..text.lines import replacing
from ..unpickling import allow_plain_values

EPOCH = re.compile(r"checkpoint(\d+)\.pt")
MEANING = re.compile(r"position|attention|activation_fn|rope_.*|.*_(heads|normalize_before)")
"""Options of a model that change no shape, but what the weights mean."""
UPDATE = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--inputs",
        nargs="+",
        type=Path,
        required=True,
        metavar="PATH",
        help="checkpoints; or one folder, with one of the two options below",
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="file to write")
    last = parser.add_mutually_exclusive_group()
    last.add_argument(
        "--num-epoch-checkpoints", type=int, metavar="N", help="the folder's last N checkpointE.pt"
    )
    last.add_argument(
        "--num-update-checkpoints",
        type=int,
        metavar="N",
        help="the folder's last N checkpoint_E_UPDATE.pt",
    )


def run(args: argparse.Namespace) -> None:
    paths = args.inputs
    if args.num_epoch_checkpoints is not None:
        paths = last_checkpoints(paths, EPOCH, args.num_epoch_checkpoints)
    elif args.num_update_checkpoints is not None:
        paths = last_checkpoints(paths, UPDATE, args.num_update_checkpoints)
    print("average of", *paths, file=sys.stderr)
    save(average(paths), args.output)


def last_checkpoints(folders: list[Path], pattern: re.Pattern[str], count: int) -> list[Path]:
    """The `count` files of the one folder whose number, as matched by `pattern`, is highest."""
    if len(folders) != 1 or not folders[0].is_dir():
        raise ValueError(
            "--inputs must be one folder when a number of checkpoints is given, but is "
            f"{' '.join(map(str, folders))} instead."
        )
    numbered = {
        int(match[1]): path
        for path in folders[0].iterdir()
        if (match := pattern.fullmatch(path.name))
    }
    if not 1 <= count <= len(numbered):
        raise ValueError(
            f"The number of checkpoints must be from 1 to the {len(numbered)} in {folders[0]}, "
            f"but is {count} instead."
        )
    return [numbered[number] for number in sorted(numbered)[-count:]]


def average(paths: list[Path]) -> dict[str, Any]:
    """The last checkpoint with the mean weights of all and without an optimiser's state.

    Sums are in float64 whatever the weights' type, which the result keeps. What is no weight
    (integers, such as counts of updates) is the last checkpoint's.
    """
    for path in paths:
        if path.is_dir():
            raise ValueError(
                f"{path} is a folder; say --num-update-checkpoints N or name its files"
            )
        if not path.is_file():
            raise ValueError(f"{path}: no such checkpoint")
    checkpoint = load(paths[-1])
    weights = checkpoint["model"]
    sums = {name: w.double() for name, w in weights.items() if w.is_floating_point()}
    for path in paths[:-1]:
        other = load(path)
        others = other["model"]
        _require_same_shapes(weights, others, paths[-1], path)
        _require_same_model(checkpoint, other, paths[-1], path)
        for name, total in sums.items():
            total += others[name]
    for name, total in sums.items():
        weights[name] = (total / len(paths)).to(weights[name].dtype)
    return {**checkpoint, "last_optimizer_state": None}


def load(path: Path) -> dict[str, Any]:
    """Read a fairseq checkpoint onto the CPU, without running code that it may contain.

    Raises ValueError for a file that is damaged or no checkpoint.
    """
    try:
        allow_plain_values()
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch meets a damaged file with errors of every kind
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ValueError(
            f"{path}: damaged, or not a checkpoint of fairseq ({reason}); train or copy it again"
        ) from None
    weights = checkpoint.get("model") if isinstance(checkpoint, dict) else None
    if not isinstance(weights, dict) or not all(map(torch.is_tensor, weights.values())):
        raise ValueError(f"{path}: not a checkpoint of fairseq: it has no weights under `model`")
    return checkpoint


def save(checkpoint: dict[str, Any], path: Path) -> None:
    """Write a checkpoint that appears under its name only when it is complete."""
    with replacing(path) as [partial]:
        torch.save(checkpoint, partial)


def _require_same_model(
    ours: dict[str, Any], theirs: dict[str, Any], our_path: Path, their_path: Path
) -> None:
    """Weights of one shape can be of models that use them in different ways."""
    our_options, their_options = map(_options, (ours, theirs))
    for name in filter(MEANING.fullmatch, our_options.keys() & their_options.keys()):
        if our_options[name] != their_options[name]:
            raise ValueError(
                f"{their_path} and {our_path} are no checkpoints of one model: they have "
                f"`{name}`={their_options[name]!r} and {our_options[name]!r}"
            )


def _options(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The model's options, which older checkpoints keep under `args`."""
    if checkpoint.get("args") is not None:
        return vars(checkpoint["args"])
    model = (checkpoint.get("cfg") or {}).get("model") or {}
    return vars(model) if isinstance(model, argparse.Namespace) else model


def _require_same_shapes(
    ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor], our_path: Path, their_path: Path
) -> None:
    shapes = [{name: w.shape for name, w in weights.items()} for weights in (ours, theirs)]
    if shapes[0] != shapes[1]:
        different = sorted({name for name, _ in shapes[0].items() ^ shapes[1].items()})
        raise ValueError(
            f"{their_path} and {our_path} are no checkpoints of one model: they differ in "
            f"{', '.join(different[:5])}"
        )
