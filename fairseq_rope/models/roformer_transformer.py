"""`--arch roformer_transformer`: an encoder-decoder whose way of knowing word order is an option."""

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
        """Build the model for a task's dictionaries; cfg may lack options added since it was saved."""
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
        found = _found_settings(state_dict)
        own = position_settings(self.cfg)
        if found is None:
            logger.info("the checkpoint does not name its position scheme; it is read as %s", own)
        for option in own if found is not None else ():
            if found.get(option, own[option]) != own[option]:
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


def _found_settings(state_dict: dict[str, Tensor]) -> Optional[dict[str, Any]]:
    """Take from a checkpoint what it says of its positions; fairseq's own have other signs of it."""
    stored = state_dict.pop("position_settings", None)
    version = [state_dict.pop(f"{side}.version", None) for side in ("encoder", "decoder")]
    for side in ("encoder", "decoder"):
        state_dict.pop(f"{side}.embed_positions._float_tensor", None)
    if stored is not None:
        return json.loads(bytes(stored.tolist()))
    if version[0] is not None:
        learned = "encoder.embed_positions.weight" in state_dict
        return {"position": "learned" if learned else "sinusoidal"}
    return None


def _register_architecture(name: str, defaults: dict[str, Any]) -> None:
    def set_defaults(args: Namespace) -> None:
        for option, value in defaults.items():
            setattr(args, option, getattr(args, option, value))

    register_model_architecture("roformer_transformer", name)(set_defaults)


for _name, _defaults in ARCHITECTURES.items():
    _register_architecture(_name, _defaults)
