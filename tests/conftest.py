"""A tiny model, its dictionary and its data, for all tests."""

import re
from types import SimpleNamespace

import pytest
import reference
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens

from fairseq_rope.models import RoFormerConfig, RoFormerTransformer
from fairseq_rope.positions import POSITIONS

TINY = {
    f"{side}_{option}": value
    for side in ("encoder", "decoder")
    for option, value in {
        "embed_dim": 32,
        "ffn_embed_dim": 64,
        "layers": 2,
        "attention_heads": 4,
    }.items()
}


# The test matrix: every scheme by its name, and rotary positions with their options.
SCHEMES = {
    **{name: reference.position_options(name) for name in POSITIONS},
    "rotary-half": {"rope_layout": "half"},
    "rotary-cross": {"rope_cross_attention": True},
    "rotary-all-options": {
        "rope_layout": "half",
        "rope_fraction": 0.5,
        "rope_values": True,
        "rope_cross_attention": True,
        "rope_scaling": "yarn",
        "rope_scaling_factor": 4.0,
        "rope_original_positions": 8,
    },
    # Linear attention, with each scheme that it can go with and with each feature map.
    "linear-rotary": {"attention": "linear"},
    "linear-rotary-half": {"attention": "linear", "rope_layout": "half"},
    "linear-fraction-values": {"attention": "linear", "rope_fraction": 0.5, "rope_values": True},
    "linear-sinusoidal": {"attention": "linear", "position": "sinusoidal"},
    "linear-learned": {"attention": "linear", "position": "learned"},
    "linear-none": {"attention": "linear", "position": "none"},
    "linear-relu": {"attention": "linear", "linear_feature_map": "relu"},
    "linear-exp": {"attention": "linear", "linear_feature_map": "exp"},
    "linear-favor": {"attention": "linear", "linear_feature_map": "favor"},
}


@pytest.fixture(params=SCHEMES)
def scheme(request):
    """The options of each position scheme in turn, for build(**scheme)."""
    return SCHEMES[request.param]


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


@pytest.fixture(scope="session")
def dictionary():
    """Twenty words, w0 to w19."""
    words = Dictionary()
    for index in range(20):
        words.add_symbol(f"w{index}")
    return words


@pytest.fixture(scope="session")
def task(dictionary):
    """What a model wants to know of its task."""
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def build(task):
    """build(**options): a tiny model with 2+2 layers, d=32, 4 heads and no dropout, in eval mode.

    Queries and keys are scaled by `sharpness`, and more so the tables of score biases: attention at
    initialisation is nearly uniform, and a fault in positions would hardly show in the logits.
    """
    tables = re.compile(r"(en|de)coder\.embed_positions\.(table|layers\.\d+)")

    def make(sharpness=2.0, seed=1, **options):
        torch.manual_seed(seed)
        config = RoFormerConfig(**{**TINY, "dropout": 0.0, **options})
        model = RoFormerTransformer.build_model(config, task)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if name.endswith(("q_proj.weight", "k_proj.weight")):
                    weight.mul_(sharpness)
                elif tables.fullmatch(name):
                    weight.mul_(sharpness**3)
        return model.eval()

    return make


@pytest.fixture
def sentences(dictionary):
    """sentences(n, longest=12): n random sentences of 1 to `longest` words, each ending in eos."""

    def make(count, longest=12, seed=1):
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
        eos = torch.tensor([dictionary.eos()])
        words = [
            torch.randint(dictionary.nspecial, len(dictionary), (n,), generator=generator)
            for n in lengths
        ]
        return [torch.cat((sentence, eos)) for sentence in words]

    return make


@pytest.fixture
def collate(dictionary):
    """collate(sentences, left_pad=False, width=None): one padded batch, (B, T)."""

    def make(tokens, left_pad=False, width=None):
        return collate_tokens(tokens, dictionary.pad(), left_pad=left_pad, pad_to_length=width)

    return make
