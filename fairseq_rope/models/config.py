"""The options of the model: one flat list, for the command line, YAML files and checkpoints."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass import ChoiceEnum, FairseqDataclass

from ..attention import FEATURE_MAPS, KERNELS
from ..positions import POSITIONS
from ..rotation import LAYOUTS, SCALINGS

CHOICES: dict[str, Collection[str]] = {
    "position": POSITIONS,
    "decoder_position": ("same", *POSITIONS),
    "attention": KERNELS,
    "linear_feature_map": FEATURE_MAPS,
    "rope_layout": LAYOUTS,
    "rope_scaling": ("none", *SCALINGS),
    "activation_fn": utils.get_available_activation_fns(),
}


def choice(name: str) -> Any:
    """The type of an option that is one of CHOICES."""
    return ChoiceEnum(list(CHOICES[name]))


def option(default: Any, text: str, **metadata: Any) -> Any:
    """A field with its --help text."""
    return field(default=default, metadata={"help": text, **metadata})


@dataclass
class Plugin:
    """The one option that must be the first.

    fairseq's message for a checkpoint of an unknown model is broken by the braces of the options
    that it prints: what is left of it is `KeyError: ` and the name of the first option. So the
    first is what such a user has forgotten. On the command line it is fairseq's own --user-dir.
    """

    user_dir: Optional[str] = option(None, "the plugin that defines this model")


@dataclass
class RoFormerConfig(FairseqDataclass, Plugin):
    """Options of `--arch roformer_transformer`; the defaults are those of Transformer base."""

    position: choice("position") = option("rotary", "how attention knows word order")
    decoder_position: choice("decoder_position") = option(
        "same", "how the decoder's does, if not as the encoder's"
    )
    attention: choice("attention") = option("softmax", "what computes self-attention")
    linear_feature_map: choice("linear_feature_map") = option(
        "elu", "what linear attention makes of queries and keys before they are rotated"
    )
    rope_base: float = option(10000.0, "pair i turns by rope_base ** (-2i / width) per place")
    rope_layout: choice("rope_layout") = option(
        "interleaved", "which dimensions make a pair: (0, 1), (2, 3), ... or (i, i + width/2)"
    )
    rope_fraction: float = option(1.0, "share of each head that turns")
    rope_scaling: choice("rope_scaling") = option(
        "none", "how the rotation is stretched for texts longer than those trained on"
    )
    rope_scaling_factor: Optional[float] = option(None, "wanted length / trained length")
    rope_original_positions: int = option(1024, "the trained length in tokens, for yarn")
    rope_cross_attention: bool = option(
        False, "turn queries and keys of the attention to the source as well"
    )
    rope_values: bool = option(False, "turn the values as well")
    relative_clip: int = option(
        16, "the longest distance with a vector of its own, for relative positions"
    )

    activation_fn: choice("activation_fn") = option(
        "relu", "activation function of the feed-forward layers"
    )
    dropout: float = option(0.1, "dropout probability")
    attention_dropout: float = option(0.0, "dropout probability for attention weights")
    activation_dropout: float = option(
        0.0, "dropout probability after the activation", argparse_alias="--relu-dropout"
    )

    encoder_embed_path: Optional[str] = option(None, "path to pre-trained encoder embeddings")
    encoder_embed_dim: int = option(512, "encoder embedding dimension")
    encoder_ffn_embed_dim: int = option(2048, "encoder feed-forward dimension")
    encoder_layers: int = option(6, "number of encoder layers")
    encoder_attention_heads: int = option(8, "number of encoder attention heads")
    encoder_normalize_before: bool = option(False, "layer norm before each encoder block")
    encoder_layerdrop: float = option(0.0, "LayerDrop probability of the encoder")
    encoder_layers_to_keep: Optional[str] = option(
        None, "which encoder layers to keep when pruning, a comma-separated list"
    )

    decoder_embed_path: Optional[str] = option(None, "path to pre-trained decoder embeddings")
    decoder_embed_dim: int = option(512, "decoder embedding dimension")
    decoder_ffn_embed_dim: int = option(2048, "decoder feed-forward dimension")
    decoder_layers: int = option(6, "number of decoder layers")
    decoder_attention_heads: int = option(8, "number of decoder attention heads")
    decoder_normalize_before: bool = option(False, "layer norm before each decoder block")
    decoder_layerdrop: float = option(0.0, "LayerDrop probability of the decoder")
    decoder_layers_to_keep: Optional[str] = option(
        None, "which decoder layers to keep when pruning, a comma-separated list"
    )

    share_decoder_input_output_embed: bool = option(
        False, "share the decoder's input and output embeddings"
    )
    share_all_embeddings: bool = option(
        False,
        "share encoder, decoder and output embeddings (needs a joined dictionary and equal "
        "embedding dimensions)",
    )
    layernorm_embedding: bool = option(False, "layer norm after the embeddings")
    no_scale_embedding: bool = option(False, "do not multiply embeddings by sqrt(dimension)")
    checkpoint_activations: bool = option(
        False, "compute each layer's activations again in the backward pass, to save memory"
    )
    max_source_positions: int = option(
        1024, "longest source in training; a limit of the model with learned positions only"
    )
    max_target_positions: int = option(
        1024, "longest target in training; a limit of the model with learned positions only"
    )


ARCHITECTURES: dict[str, dict[str, Any]] = {
    "roformer_transformer_wmt_en_de": {},
    "roformer_transformer_wmt_en_de_big": {
        "encoder_embed_dim": 1024,
        "encoder_ffn_embed_dim": 4096,
        "encoder_attention_heads": 16,
        "decoder_embed_dim": 1024,
        "decoder_ffn_embed_dim": 4096,
        "decoder_attention_heads": 16,
        "dropout": 0.3,
    },
    "roformer_transformer_iwslt_de_en": {
        "encoder_ffn_embed_dim": 1024,
        "encoder_attention_heads": 4,
        "decoder_ffn_embed_dim": 1024,
        "decoder_attention_heads": 4,
    },
    "roformer_transformer_tiny": {
        "encoder_embed_dim": 128,
        "encoder_ffn_embed_dim": 512,
        "encoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_embed_dim": 128,
        "decoder_ffn_embed_dim": 512,
        "decoder_layers": 3,
        "decoder_attention_heads": 4,
    },
}


def position_of(config: RoFormerConfig, side: str) -> str:
    """The name of the position scheme of one side, "encoder" or "decoder"."""
    decoder = str(config.decoder_position)
    return str(config.position) if side == "encoder" or decoder == "same" else decoder


def position_settings(config: RoFormerConfig) -> dict[str, Any]:
    """How the model knows word order, in words, as a checkpoint stores it."""
    encoder, decoder = (position_of(config, side) for side in ("encoder", "decoder"))
    kernel = str(config.attention)
    return {
        "position": encoder,
        "decoder_position": decoder,
        "attention": kernel,
        **POSITIONS[encoder].settings(config),
        **POSITIONS[decoder].settings(config),
        **KERNELS[kernel].settings(config),
    }


def layers_to_keep(config: RoFormerConfig, side: str) -> list[int]:
    """The layers that pruning keeps on one side, in order; none named means no pruning.

    Raises:
        ValueError: not a list of different numbers
    """
    named = getattr(config, f"{side}_layers_to_keep") or ""
    numbers = [number.strip() for number in named.split(",") if number.strip()]
    if len(set(numbers)) < len(numbers) or not all(number.isdecimal() for number in numbers):
        raise ValueError(
            f"`{side}_layers_to_keep` must be different layer numbers such as 0,2,4, "
            f"but is {named!r}."
        )
    return sorted(map(int, numbers))
