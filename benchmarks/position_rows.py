"""What benchmarks.positions compares: the trainings, and the rows of its table."""

from typing import Any, NamedTuple

SIZES = """
    --arch roformer_transformer --dropout 0.1
    --encoder-layers 3 --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
    --decoder-layers 3 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256
    --encoder-attention-heads 4 --decoder-attention-heads 4"""

CROSS = "--rope-cross-attention"
CONCAT = "--task translation_concat --concat-share 0.5 --concat-sentences 2"

SCHEMES = {
    "rotary": "",
    "rotary, source too": CROSS,
    "sinusoidal": "--position sinusoidal",
    "learned": "--position learned",
    "none": "--position none",
    "alibi": "--position alibi",
    "relative": "--position relative",
    "t5": "--position t5",
    "floater": "--position floater",
    "rotary, xpos in the decoder": "--position rotary --decoder-position xpos",
    "rotary, linear attention": "--attention linear",
}
"""Options of fairseq-train by the name of the row."""

CONCATENATED = {
    f"{name}, trained on pairs too": f"{SCHEMES[name]} {CONCAT}"
    for name in ("rotary", "rotary, source too", "sinusoidal")
}
TRAININGS = {**SCHEMES, **CONCATENATED}

SCALED = "rotary, source too"
FACTOR = 4.0
TRAINED_LENGTH = 64
"""Pieces; no line of the training data is longer."""


class Row(NamedTuple):
    """A trained model, and options that are changed when it translates."""

    training: str
    overrides: dict[str, Any] = {}


ROWS = {
    **{name: Row(name) for name in TRAININGS},
    **{
        f"{SCALED}, {method} scaling": Row(
            SCALED, {"rope_scaling": method, "rope_scaling_factor": FACTOR}
        )
        for method in ("linear", "ntk")
    },
    f"{SCALED}, yarn scaling": Row(
        SCALED,
        {
            "rope_scaling": "yarn",
            "rope_scaling_factor": FACTOR,
            "rope_original_positions": TRAINED_LENGTH,
        },
    ),
}
