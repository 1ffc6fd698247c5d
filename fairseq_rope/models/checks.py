"""Refusing options from which no model can be built, before anything is."""

from .config import CHOICES, RoFormerConfig, kept_layers

PROBABILITIES = (
    "dropout",
    "attention_dropout",
    "activation_dropout",
    "encoder_layerdrop",
    "decoder_layerdrop",
)


def check_config(config: RoFormerConfig) -> None:
    """Refuse what no model can be built from.

    Raises:
        ValueError: names the option, its value and the remedy
    """
    for name, choices in CHOICES.items():
        value = str(getattr(config, name))
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {', '.join(choices)}, but is {value!r}.")
    if str(config.position) != "rotary":
        _refuse_rotary_options(config)
    for name in PROBABILITIES:
        if not 0 <= getattr(config, name) < 1:
            raise ValueError(
                f"`{name}` must be at least 0 and below 1, but is {getattr(config, name)}."
            )
    for side in ("encoder", "decoder"):
        _check_sizes(config, side)


def _refuse_rotary_options(config: RoFormerConfig) -> None:
    used = [name for name in ("rope_cross_attention", "rope_values") if getattr(config, name)]
    used += ["rope_scaling"] if str(config.rope_scaling) != "none" else []
    if used:
        raise ValueError(
            f"`{used[0]}`={getattr(config, used[0])} needs `position`='rotary', "
            f"but position is {str(config.position)!r}."
        )


def _check_sizes(config: RoFormerConfig, side: str) -> None:
    layers = getattr(config, f"{side}_layers")
    if layers < 1:
        raise ValueError(f"`{side}_layers` must be at least 1, but is {layers}.")
    kept = kept_layers(config, side)
    if kept and kept[-1] >= layers:
        raise ValueError(
            f"`{side}_layers_to_keep`={getattr(config, f'{side}_layers_to_keep')!r} names a layer "
            f"that is not there: `{side}_layers`={layers} are numbered 0 to {layers - 1}."
        )
    width, heads = (getattr(config, f"{side}_{name}") for name in ("embed_dim", "attention_heads"))
    if heads < 1 or width % heads:
        nearest = max(1, round(width / max(heads, 1))) * max(heads, 1)
        raise ValueError(
            f"`{side}_embed_dim`={width} must be a multiple of `{side}_attention_heads`={heads}; "
            f"the nearest is {nearest}."
        )
