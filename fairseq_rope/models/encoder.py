"""The encoder."""

from typing import Any, Optional

from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from ..attention import AttentionMask
from ..positions import token_positions
from .config import RoFormerConfig
from .layers import EncoderLayer
from .stack import TransformerStack

EncoderOut = dict[str, list[Tensor]]


class Encoder(TransformerStack, FairseqEncoder):
    """Reads the source.

    Tensors inside are (batch, time, channel); those handed to fairseq are (time, batch, channel),
    as its own encoder hands them out.
    """

    def __init__(self, config: RoFormerConfig, dictionary: Any, embed_tokens: nn.Embedding) -> None:
        super().__init__(dictionary)
        self.build_stack(config, "encoder", embed_tokens, EncoderLayer)

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Optional[Tensor] = None,
        return_all_hiddens: bool = False,
    ) -> EncoderOut:
        """Encode a batch.

        Args:
            src_tokens: (B, S) int64, padded on either side
            src_lengths: (B); fairseq passes them, the padding says the same
            return_all_hiddens: also return the input and output of every layer

        Returns:
            lists of one tensor: `encoder_out` (S, B, C), `encoder_padding_mask` (B, S) bool,
            `encoder_places` (B or 1, S); and `encoder_states`, a list of (S, B, C)
        """
        padding = src_tokens.eq(self.padding_idx)
        places = token_positions(src_tokens, self.padding_idx)
        positions = self.embed_positions(places)
        mask = AttentionMask(places, places, padding if padding.any() else None)
        x = self.embed(src_tokens, places)
        states = [x]
        for index in self.layers_to_run():
            x = self.run(index, x, positions[index].own, mask)
            states.append(x)
        if self.layer_norm is not None:
            x = self.layer_norm(x)
        return {
            "encoder_out": [x.transpose(0, 1)],
            "encoder_padding_mask": [padding],
            "encoder_places": [places],
            "encoder_states": [s.transpose(0, 1) for s in states] if return_all_hiddens else [],
        }

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Take the rows `new_order` of a batch that `forward` returned."""

        def rows(name: str, dim: int) -> list[Tensor]:
            return [x.index_select(dim, new_order) for x in encoder_out[name]]

        places = encoder_out["encoder_places"]
        return {
            "encoder_out": rows("encoder_out", 1),
            "encoder_padding_mask": rows("encoder_padding_mask", 0),
            "encoder_places": places if places[0].size(0) == 1 else rows("encoder_places", 0),
            "encoder_states": rows("encoder_states", 1),
        }
