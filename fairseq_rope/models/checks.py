"""Refusing options from which no model can be built, before anything is."""

import typing
from dataclasses import Field, fields
from enum import Enum
from typing import Any

from ..attention import KERNELS
from ..positions import POSITIONS
from .config import CHOICES, RoFormerConfig, layers_to_keep, position_settings

PROBABILITIES = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
)

SIZES = ("layers", "embed_dim", "ffn_embed_dim", "attention_heads")


def check_config(config: RoFormerConfig) -> None:
    """Refuse what no model can be built from.

    Raises:
        ValueError: names the option, its value and the remedy
    """
    for option in fields(RoFormerConfig):
        _check_type(option, getattr(config, option.name))
    for name, choices in CHOICES.items():
        value = str(getattr(config, name))
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, but is {value!r}.")
    _refuse_idle_options(config)
    for name in PROBABILITIES:
        if not 0 <= getattr(config, name) < 1:
            raise ValueError(
                f"`{name}` must be at least 0 and below 1, but is {getattr(config, name)}."
            )
    for side in ("encoder", "decoder"):
        _check_sizes(config, side)


def _check_type(option: Field, value: Any) -> None:
    """Overrides at loading reach here unchecked; the command line and YAML check their types."""
    if option.name in CHOICES or value is None and option.default is None:
        return
    wanted = typing.get_args(option.type)[0] if option.default is None else option.type
    accepted = (float, int) if wanted is float else (wanted,)
    if not isinstance(value, accepted) or (wanted is not bool and isinstance(value, bool)):
        raise ValueError(
            f"`{option.name}` must be of type {wanted.__name__}, but is {value!r}, "
            f"a {type(value).__name__}."
        )


def _refuse_idle_options(config: RoFormerConfig) -> None:
    """Options of a scheme or kernel have no effect without it, nor yarn's without yarn."""
    used, given = position_settings(config), _given(config)
    for chooser, parts in (("position", POSITIONS), ("attention", KERNELS)):
        for option in given:
            owners = [name for name, part in parts.items() if option in part.settings(config)]
            if owners and option not in used:
                raise ValueError(
                    f"`{option}`={getattr(config, option)} has an effect with `{chooser}`="
                    f"{' or '.join(map(repr, owners))} only, but {chooser} is "
                    f"{str(getattr(config, chooser))!r}; leave it out."
                )
    if str(config.rope_scaling) != "yarn" and "rope_original_positions" in given:
        raise ValueError(
            f"`rope_original_positions`={config.rope_original_positions} has an effect with "
            f"`rope_scaling`='yarn' only, but it is {str(config.rope_scaling)!r}; leave it out."
        )


def _given(config: RoFormerConfig) -> list[str]:
    """The options that are not at their defaults."""
    options = fields(RoFormerConfig)
    return [o.name for o in options if _plain(getattr(config, o.name)) != _plain(o.default)]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Enum) else value


def _check_sizes(config: RoFormerConfig, side: str) -> None:
    limit = "max_source_positions" if side == "encoder" else "max_target_positions"
    for name in (*(f"{side}_{size}" for size in SIZES), limit):
        if getattr(config, name) < 1:
            raise ValueError(f"`{name}` must be at least 1, but is {getattr(config, name)}.")
    layers = getattr(config, f"{side}_layers")
    kept = layers_to_keep(config, side)
    if kept and kept[-1] >= layers:
        raise ValueError(
            f"`{side}_layers_to_keep`={getattr(config, f'{side}_layers_to_keep')!r} names a layer "
            f"that is not there: `{side}_layers`={layers} are numbered 0 to {layers - 1}."
        )
    width, heads = (getattr(config, f"{side}_{name}") for name in ("embed_dim", "attention_heads"))
    if width % heads:
        nearest = max(1, round(width / heads)) * heads
        raise ValueError(
            f"`{side}_embed_dim`={width} must be a multiple of `{side}_attention_heads`={heads}; "
            f"the nearest is {nearest}."
        )
