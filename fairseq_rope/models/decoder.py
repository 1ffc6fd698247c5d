"""The decoder."""

from typing import Any, NamedTuple, Optional

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from ..attention import AttentionMask
from ..attention.self_attention import IncrementalState
from ..positions import token_positions
from .config import RoFormerConfig
from .encoder import EncoderOut
from .layers import DecoderLayer
from .stack import TransformerStack


class Source(NamedTuple):
    """The encoder's output as the decoder reads it; `shared` rows of the target read one row."""

    tokens: Tensor  # (B / shared, S, C)
    padding: Optional[Tensor]  # (B / shared, S) bool, None where nothing is padding
    places: Tensor  # (B / shared or 1, S)


class Decoder(TransformerStack, FairseqIncrementalDecoder):
    """Writes the target, all at once (training) or step by step from a cache (generation)."""

    def __init__(self, config: RoFormerConfig, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(dictionary)
        self.build_stack(config, "decoder", embed_tokens, DecoderLayer)
        self.beam_size = 1
        self.need_attn = True
        width = config.decoder_embed_dim
        self.output_projection = nn.Linear(width, len(dictionary), bias=False)
        if config.share_decoder_input_output_embed or config.share_all_embeddings:
            self.output_projection.weight = embed_tokens.weight
        else:
            nn.init.normal_(self.output_projection.weight, mean=0, std=width**-0.5)

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: IncrementalState = None,
        features_only: bool = False,
        **options: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Score every next token: (B, T, vocabulary) logits, or (B, T, C) with `features_only`.

        The other arguments are those of `extract_features`.
        """
        x, extra = self.extract_features(
            prev_output_tokens, encoder_out, incremental_state, **options
        )
        return (x if features_only else self.output_layer(x)), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut,
        incremental_state: IncrementalState = None,
        full_context_alignment: bool = False,
        alignment_layer: Optional[int] = None,
        alignment_heads: Optional[int] = None,
        return_all_hiddens: bool = False,
        src_lengths: Optional[Tensor] = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Run the layers.

        Args:
            prev_output_tokens: (B, L) all target tokens so far; with a cache only those that it
                has not seen are computed
            encoder_out: what the encoder returned
            incremental_state: the cache, a dict that fairseq passes from step to step
            full_context_alignment: let every token see the whole target
            alignment_layer: the layer whose attention to the source is returned (default: the last)
            alignment_heads: average over the first so many heads only (default: all)
            return_all_hiddens: also return the input and output of every layer
            src_lengths: (B); fairseq passes them, the padding says the same

        Returns:
            (B, T, C) features of the T new tokens; `attn`, a list of one (B, T, S) or None; and
            `inner_states`, a list of (T, B, C)
        """
        cached = self._cached_length(incremental_state)
        source = self._source(encoder_out, incremental_state)
        all_places = token_positions(prev_output_tokens, self.padding_idx)
        places, tokens = all_places[:, cached:], prev_output_tokens[:, cached:]
        padding = self._target_padding(prev_output_tokens, all_places, full_context_alignment)
        mask = AttentionMask(places, all_places, padding, causal=not full_context_alignment)
        source_mask = AttentionMask(places, source.places, source.padding)
        positions = self.embed_positions(places, None if cached else source.places)
        wanted = self._layer_to_show(alignment_layer)
        x = self.embed(tokens, places)
        states, attention = [x], None
        for index in self.layers_to_run():
            x, weights = self.run(
                index,
                x,
                source.tokens,
                positions[index],
                mask,
                source_mask,
                incremental_state,
                index == wanted,
            )
            states.append(x)
            attention = attention if weights is None else weights[:, :alignment_heads].mean(dim=1)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        hidden = [state.transpose(0, 1) for state in states] if return_all_hiddens else []
        return x, {"attn": [attention], "inner_states": hidden}

    def output_layer(self, features: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, vocabulary)."""
        return self.output_projection(features)

    def make_generation_fast_(self, need_attn: bool = False, **kwargs: Any) -> None:
        """fairseq calls this before generation, with need_attn under --print-alignment."""
        self.need_attn = need_attn

    def _layer_to_show(self, alignment_layer: Optional[int]) -> Optional[int]:
        """The layer that returns its attention to the source, as fairseq's decoder chooses it."""
        if alignment_layer is not None:
            return alignment_layer % len(self.layers)
        return len(self.layers) - 1 if self.need_attn and not self.training else None

    def _cached_length(self, incremental_state: IncrementalState) -> int:
        """How many target tokens the cache has seen."""
        return self.layers[0].self_attn.cached_length(incremental_state)

    def _target_padding(
        self, tokens: Tensor, places: Tensor, full_context: bool
    ) -> Optional[Tensor]:
        """Causality hides padding after the sentence; only padding before it needs a mask."""
        causal_hides_it = places.size(0) == 1 and not full_context
        return None if causal_hides_it else tokens.eq(self.padding_idx)

    def _source(self, encoder_out: EncoderOut, incremental_state: IncrementalState) -> Source:
        """The source with each sentence once, where beam search hands it once per hypothesis."""
        tokens = encoder_out["encoder_out"][0].transpose(0, 1)
        padding = encoder_out["encoder_padding_mask"][0]
        places = encoder_out["encoder_places"][0]
        shared = self._hypotheses(tokens, incremental_state)
        if places.size(0) > 1:
            places = places[::shared]
        padding = padding[::shared] if padding.any() else None
        return Source(tokens[::shared], padding, places)

    def _hypotheses(self, source: Tensor, incremental_state: IncrementalState) -> int:
        """How many rows of the source are copies of each sentence: the beam size in beam search.

        The rows are compared, since the beam size alone does not tell: a model that has generated
        keeps its beam size, and may then be asked to score a batch without hypotheses.
        """
        if incremental_state is None or self.beam_size == 1:
            return 1
        known = self.layers[0].encoder_attn.hypotheses(incremental_state)
        if known is not None:
            return known
        if source.size(0) % self.beam_size:
            return 1
        grouped = source.unflatten(0, (-1, self.beam_size))
        same = torch.equal(grouped, grouped[:, :1].expand_as(grouped))
        return self.beam_size if same else 1

    def set_beam_size(self, beam_size: int) -> None:
        """Hypotheses per sentence in the beam search to come."""
        self.beam_size = beam_size
