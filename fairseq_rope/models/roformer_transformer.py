"""`--arch roformer_transformer`: an encoder-decoder that is told how to know word order."""

import json
import logging
from argparse import Namespace
from typing import Any, Optional

import torch
from fairseq import utils
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from torch import Tensor, nn

from .config import ARCHITECTURES, RoFormerConfig, check_config, position_settings
from .decoder import Decoder
from .encoder import Encoder

logger = logging.getLogger(__name__)

FOREIGN_BUFFERS = {"inv_freq", "cos_cached", "sin_cached", "freqs", "_float_tensor", "weights"}


@register_model("roformer_transformer", dataclass=RoFormerConfig)
class RoFormerTransformer(FairseqEncoderDecoderModel):
    """Transformer with rotary positions (RoFormer, arXiv 2104.09864) or another scheme.

    Raises:
        ValueError: options that do not fit each other, or a checkpoint of another position scheme
    """

    def __init__(self, config: RoFormerConfig, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__(encoder, decoder)
        self.cfg = config
        self.supports_align_args = True
        # Schemes may have equal parameters, so a checkpoint says in words which one it is of.
        self.register_buffer("position_settings", _to_tensor(position_settings(config)))

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options without defaults, so that an architecture's defaults can stand."""
        gen_parser_from_dataclass(parser, RoFormerConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RoFormerTransformer":
        """Build the model for a task's dictionaries; cfg may lack options newer than itself."""
        config = RoFormerConfig.from_namespace(cfg)
        for side in ("encoder", "decoder"):
            kept = getattr(config, f"{side}_layers_to_keep")
            if kept:
                setattr(config, f"{side}_layers", len(kept.split(",")))
        check_config(config)
        source, target = task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings:
            _check_shareable(config, source, target)
        path = config.encoder_embed_path
        source_embedding = embedding(source, config.encoder_embed_dim, path)
        target_embedding = source_embedding
        if not config.share_all_embeddings:
            path = config.decoder_embed_path
            target_embedding = embedding(target, config.decoder_embed_dim, path)
        encoder = Encoder(config, source, source_embedding)
        return cls(config, encoder, Decoder(config, target, target_embedding))

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor],
        prev_output_tokens: Tensor,
        return_all_hiddens: bool = False,
        **decoder_options: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """(B, S) source and (B, T) target -> (B, T, vocabulary) logits; see the two stacks."""
        encoder_out = self.encoder(src_tokens, src_lengths, return_all_hiddens)
        return self.decoder(
            prev_output_tokens,
            encoder_out,
            return_all_hiddens=return_all_hiddens,
            **decoder_options,
        )

    def set_beam_size(self, beam_size: int) -> None:
        """fairseq's generator calls this before beam search."""
        self.decoder.set_beam_size(beam_size)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Accept checkpoints of fairseq's transformer, and refuse those of another scheme."""
        super().upgrade_state_dict_named(state_dict, name)
        _drop_foreign_buffers(state_dict)
        own = position_settings(self.cfg)
        found = _found_settings(state_dict, own)
        for option in own:
            if found[option] != own[option]:
                raise ValueError(
                    f"the checkpoint was trained with `{option}`={found[option]!r}, but the model "
                    f"has {own[option]!r}; its weights mean nothing there. Leave the option out at "
                    f"generation (the checkpoint knows it), or train with {option}={found[option]}."
                )
        state_dict["position_settings"] = self.position_settings


def embedding(dictionary: Any, width: int, path: Optional[str] = None) -> nn.Embedding:
    """A (vocabulary, width) table, drawn as fairseq draws it or read from a file of vectors."""
    table = nn.Embedding(len(dictionary), width, padding_idx=dictionary.pad())
    nn.init.normal_(table.weight, mean=0, std=width**-0.5)
    nn.init.constant_(table.weight[dictionary.pad()], 0)
    if path:
        utils.load_embedding(utils.parse_embedding(path), dictionary, table)
    return table


def _check_shareable(config: RoFormerConfig, source: Any, target: Any) -> None:
    if source != target:
        raise ValueError(
            "`share_all_embeddings`=True needs one dictionary for both languages, but source has "
            f"{len(source)} and target {len(target)} words; run fairseq-preprocess with "
            "--joined-dictionary, or train without --share-all-embeddings."
        )
    if config.encoder_embed_dim != config.decoder_embed_dim:
        raise ValueError(
            "`share_all_embeddings`=True needs equal widths, but `encoder_embed_dim`="
            f"{config.encoder_embed_dim} and `decoder_embed_dim`={config.decoder_embed_dim}."
        )
    if config.decoder_embed_path not in (None, config.encoder_embed_path):
        raise ValueError(
            "`share_all_embeddings`=True uses `encoder_embed_path` for both sides, but "
            f"`decoder_embed_path`={config.decoder_embed_path!r}; leave it out."
        )


def _to_tensor(settings: dict[str, Any]) -> Tensor:
    """JSON text as int64: survives `.half()` and the averaging of checkpoints."""
    return torch.tensor(list(json.dumps(settings).encode()), dtype=torch.int64)


def _found_settings(state_dict: dict[str, Tensor], own: dict[str, Any]) -> dict[str, Any]:
    """Take from a checkpoint what it says of its positions; the unsaid is taken as ours."""
    stored = state_dict.pop("position_settings", None)
    of_fairseq = [state_dict.pop(f"{side}.version", None) for side in ("encoder", "decoder")]
    if stored is not None:
        return {**own, **json.loads(bytes(stored.tolist()))}
    if of_fairseq[0] is None:
        logger.info("the checkpoint does not name its position scheme; it is read as %s", own)
        return own
    if "encoder.embed_positions.weight" in state_dict:
        return {**own, "position": "learned"}
    # Without a table of positions, fairseq's transformer had sinusoids or nothing.
    return {**own, "position": "none" if own["position"] == "none" else "sinusoidal"}


def _drop_foreign_buffers(state_dict: dict[str, Tensor]) -> None:
    """Forget tables that other code saved and that are computed here, with a note of each."""
    for key in [key for key in state_dict if key.rsplit(".", 1)[-1] in FOREIGN_BUFFERS]:
        del state_dict[key]
        logger.info("the checkpoint's %s is not needed: it is computed, not loaded", key)


def _register_architecture(name: str, defaults: dict[str, Any]) -> None:
    def set_defaults(args: Namespace) -> None:
        for option, value in defaults.items():
            setattr(args, option, getattr(args, option, value))

    register_model_architecture("roformer_transformer", name)(set_defaults)


for _name, _defaults in ARCHITECTURES.items():
    _register_architecture(_name, _defaults)
