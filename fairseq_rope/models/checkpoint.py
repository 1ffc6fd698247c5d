"""What a checkpoint's weights must be told, or asked, before they fit the model."""

import json
import logging
import re
from collections.abc import Set
from typing import Any

import torch
from torch import Tensor

from ..unpickling import allow_plain_values
from .config import RoFormerConfig

logger = logging.getLogger(__name__)

# Checkpoints of fairseq's own models load too, beside ours, on torch >= 2.6.
allow_plain_values()

StateDict = dict[str, Tensor]
SETTINGS = "position_settings"
FOREIGN_BUFFERS = {"inv_freq", "cos_cached", "sin_cached", "freqs", "_float_tensor", "weights"}


def settings_tensor(settings: dict[str, Any]) -> Tensor:
    """JSON text, a number for each byte.

    They are floating point because averaging, EMA and `.half()` take every entry of a checkpoint
    for a weight; all of these keep numbers below 256, but for a rounding error.
    """
    return torch.tensor(list(json.dumps(settings).encode()), dtype=torch.float32)


def check_settings(state_dict: StateDict, own: dict[str, Any], changeable: Set[str]) -> None:
    """Take the settings out of a checkpoint, and refuse those that the model does not share.

    Those that may be changed after training are noted only.

    Raises:
        ValueError: the weights were trained with other positions
    """
    found = _found_settings(state_dict, own)
    for option in own:
        if found[option] == own[option]:
            continue
        if option in changeable:
            logger.warning(
                "the checkpoint was trained with %s=%s, and is used with %s now",
                *(option, found[option], own[option]),
            )
        else:
            raise ValueError(
                f"the checkpoint was trained with `{option}`={found[option]!r}, but the model has "
                f"{own[option]!r}; its weights mean nothing there. Leave the option out at "
                f"generation (the checkpoint knows it), or train with {option}={found[option]}."
            )


def _found_settings(state_dict: StateDict, own: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says of its positions.

    An option that it does not know had no effect, as its default has none; where a checkpoint says
    nothing at all, it is taken as ours.
    """
    stored = state_dict.pop(SETTINGS, None)
    of_fairseq = [state_dict.pop(f"{side}.version", None) for side in ("encoder", "decoder")]
    defaults = {option: getattr(RoFormerConfig, option, None) for option in own}
    if stored is not None:
        said = json.loads(bytes(stored.round().int().tolist()))
        return {**defaults, "decoder_position": said["position"], **said}
    if of_fairseq[0] is None:
        logger.info("the checkpoint does not name its position scheme; it is read as %s", own)
        return own
    if "encoder.embed_positions.weight" in state_dict:
        position = "learned"
    else:  # Without a table of positions, fairseq's transformer had sinusoids or nothing.
        position = "none" if own["position"] == "none" else "sinusoidal"
    return {**defaults, "position": position, "decoder_position": position}


def drop_foreign_buffers(state_dict: StateDict) -> None:
    """Forget tables that other code saved and that are computed here, with a note of each."""
    for key in [key for key in state_dict if key.rsplit(".", 1)[-1] in FOREIGN_BUFFERS]:
        del state_dict[key]
        logger.info("the checkpoint's %s is not needed: it is computed, not loaded", key)


def prune_layers(state_dict: StateDict, side: str, kept: list[int]) -> StateDict:
    """Only the layers `kept` of one side, renumbered: pruning after LayerDrop (arXiv 1909.11556).

    A checkpoint that has just so many layers has been pruned before and stays as it is.

    Raises:
        ValueError: a layer that the checkpoint does not have
    """
    layer = re.compile(rf"({side}\.(?:embed_positions\.)?layers\.)(\d+)(|\..*)", re.DOTALL)
    matches = {key: layer.fullmatch(key) for key in state_dict}
    layers = {int(match[2]) for match in matches.values() if match}
    if len(layers) == len(kept):
        return state_dict
    if not layers.issuperset(kept):
        raise ValueError(
            f"`{side}_layers_to_keep`={','.join(map(str, kept))} names a layer that the checkpoint "
            f"does not have; it has layers 0 to {len(layers) - 1}."
        )
    new_number = {old: new for new, old in enumerate(kept)}
    pruned = {}
    for key, match in matches.items():
        if match is None:
            pruned[key] = state_dict[key]
        elif int(match[2]) in new_number:
            pruned[f"{match[1]}{new_number[int(match[2])]}{match[3]}"] = state_dict[key]
    return pruned
