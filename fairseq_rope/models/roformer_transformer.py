"""`--arch roformer_transformer`: an encoder-decoder that is told how to know word order."""

from argparse import Namespace
from pathlib import Path
from typing import Any, Optional

from fairseq import utils
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import (
    FairseqEncoderDecoderModel,
    register_model,
    register_model_architecture,
)
from torch import Tensor, nn

from .checkpoint import (
    SETTINGS,
    StateDict,
    check_settings,
    drop_foreign_buffers,
    prune_layers,
    settings_tensor,
)
from .checks import check_config
from .config import ARCHITECTURES, RoFormerConfig, layers_to_keep, position_settings
from .decoder import Decoder
from .encoder import Encoder


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
        self.register_buffer(SETTINGS, settings_tensor(position_settings(config)))

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the options without defaults, so that an architecture's defaults can stand."""
        gen_parser_from_dataclass(parser, RoFormerConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> "RoFormerTransformer":
        """Build the model for a task's dictionaries; cfg may lack options newer than itself."""
        config = RoFormerConfig.from_namespace(cfg)
        check_config(config)
        for side in ("encoder", "decoder"):
            kept = layers_to_keep(config, side)
            if kept:
                setattr(config, f"{side}_layers", len(kept))
        source, target = task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings:
            _check_shareable(config, source, target)
        source_embedding = target_embedding = embedding(config, "encoder", source)
        if not config.share_all_embeddings:
            target_embedding = embedding(config, "decoder", target)
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

    def load_state_dict(
        self, state_dict: StateDict, strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        """Load weights, of the layers to keep only.

        fairseq's own pruning, which `model_cfg` would ask for, drops every layer of a side that
        names none, and prunes what it has pruned again.
        """
        for side in ("encoder", "decoder"):
            kept = layers_to_keep(self.cfg, side)
            if kept:
                state_dict = prune_layers(state_dict, side, kept)
        return super().load_state_dict(state_dict, strict)

    def upgrade_state_dict_named(self, state_dict: StateDict, name: str) -> None:
        """Accept checkpoints of fairseq's transformer, and refuse those of another scheme."""
        super().upgrade_state_dict_named(state_dict, name)
        drop_foreign_buffers(state_dict)
        stacks = (self.encoder, self.decoder)
        changeable = frozenset().union(*(stack.embed_positions.changeable for stack in stacks))
        check_settings(state_dict, position_settings(self.cfg), changeable)
        state_dict[SETTINGS] = self.position_settings


def embedding(config: RoFormerConfig, side: str, dictionary: Any) -> nn.Embedding:
    """A (vocabulary, width) table, drawn as fairseq draws it or read from a file of vectors."""
    width = getattr(config, f"{side}_embed_dim")
    path = getattr(config, f"{side}_embed_path")
    table = nn.Embedding(len(dictionary), width, padding_idx=dictionary.pad())
    nn.init.normal_(table.weight, mean=0, std=width**-0.5)
    nn.init.constant_(table.weight[dictionary.pad()], 0)
    if path and not Path(path).is_file():
        override = f"--model-overrides \"{{'{side}_embed_path': None}}\""
        raise ValueError(
            f"`{side}_embed_path`={path!r} is no file; correct it. A trained checkpoint has "
            f"embeddings of its own and does not need it: {override}."
        )
    if path:
        try:
            vectors = utils.parse_embedding(path)
        except (ValueError, IndexError) as error:
            raise ValueError(
                f"`{side}_embed_path`={path!r} is no file of embeddings (a line of two counts, "
                f"then lines of a word and its numbers): {error}."
            ) from None
        utils.load_embedding(vectors, dictionary, table)
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


def _register_architecture(name: str, defaults: dict[str, Any]) -> None:
    def set_defaults(args: Namespace) -> None:
        for option, value in defaults.items():
            setattr(args, option, getattr(args, option, value))

    register_model_architecture("roformer_transformer", name)(set_defaults)


for _name, _defaults in ARCHITECTURES.items():
    _register_architecture(_name, _defaults)
