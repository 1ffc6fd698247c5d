"""Every option changes the built model: from the command line, from YAML, and after reload."""

from dataclasses import fields
from functools import cache
from typing import NamedTuple

import pytest
import torch
from fairseq import options as fairseq_options
from fairseq import tasks
from fairseq.dataclass.initialize import add_defaults, hydra_init
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from fairseq_rope import CONFIG_DIR
from fairseq_rope.attention import KERNELS
from fairseq_rope.models.config import RoFormerConfig

from .commands import PLUGIN, build, load, parse, save

OPTIONS = {option.name: option for option in fields(RoFormerConfig) if option.name != "_name"}
# Small, and not shared, so that each side can be changed alone.
BASE = {
    "encoder_embed_dim": 32,
    "decoder_embed_dim": 32,
    "encoder_ffn_embed_dim": 48,
    "decoder_ffn_embed_dim": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "dropout": 0.0,
    "user_dir": str(PLUGIN),
}


class Case(NamedTuple):
    """Setting an option to `value` changes `first`, and nothing that stands before it in TRAITS."""

    value: object
    first: str
    given: dict = {}


LEARNED, YARN = {"position": "learned"}, {"rope_scaling": "yarn", "rope_scaling_factor": 4.0}
VECTORS = "{vectors}"  # a file of word vectors, made by the fixture
CASES = {
    "position": Case("sinusoidal", "outputs"),
    "decoder_position": Case("none", "outputs"),
    "attention": Case("linear", "outputs"),
    "linear_feature_map": Case("relu", "outputs", {"attention": "linear"}),
    "rope_base": Case(50.0, "outputs"),
    "rope_layout": Case("half", "outputs"),
    "rope_fraction": Case(0.5, "outputs"),
    "rope_scaling": Case("ntk", "outputs", {"rope_scaling_factor": 4.0, "rope_scaling": "linear"}),
    "rope_scaling_factor": Case(8.0, "outputs", YARN),
    "rope_original_positions": Case(8, "outputs", YARN),
    "rope_cross_attention": Case(True, "outputs"),
    "rope_values": Case(True, "outputs"),
    "relative_clip": Case(4, "parameters", {"position": "relative"}),
    "activation_fn": Case("gelu", "outputs"),
    "dropout": Case(0.5, "training"),
    "attention_dropout": Case(0.5, "training"),
    "activation_dropout": Case(0.5, "training"),
    "encoder_embed_path": Case(VECTORS, "outputs"),
    "encoder_embed_dim": Case(64, "parameters"),
    "encoder_ffn_embed_dim": Case(64, "parameters"),
    "encoder_layers": Case(3, "parameters"),
    "encoder_attention_heads": Case(2, "outputs"),
    "encoder_normalize_before": Case(True, "parameters"),
    "encoder_layerdrop": Case(0.5, "training"),
    "encoder_layers_to_keep": Case("0", "parameters"),
    "decoder_embed_path": Case(VECTORS, "outputs"),
    "decoder_embed_dim": Case(64, "parameters"),
    "decoder_ffn_embed_dim": Case(64, "parameters"),
    "decoder_layers": Case(3, "parameters"),
    "decoder_attention_heads": Case(2, "outputs"),
    "decoder_normalize_before": Case(True, "parameters"),
    "decoder_layerdrop": Case(0.5, "training"),
    "decoder_layers_to_keep": Case("0", "parameters"),
    "share_decoder_input_output_embed": Case(True, "parameters"),
    "share_all_embeddings": Case(True, "parameters"),
    "layernorm_embedding": Case(True, "parameters"),
    "no_scale_embedding": Case(True, "outputs"),
    "checkpoint_activations": Case(True, "memory"),
    "max_source_positions": Case(16, "parameters", LEARNED),
    "max_target_positions": Case(16, "parameters", LEARNED),
    "user_dir": Case(f"{PLUGIN}/", "plugin"),
}
# A checkpoint with all layers is pruned to these when it is loaded: test_checkpoints.py.
PRUNED_ON_LOADING = {"encoder_layers_to_keep", "decoder_layers_to_keep"}


def traits(model):
    """What an option can change, in the order in which one change brings about the next."""
    tokens = torch.arange(4, 16).view(2, 6)
    tokens[1, 0] = model.encoder.padding_idx
    saved = []

    def keep(tensor):
        saved.append(tensor.numel())
        return tensor

    def logits(mode):
        torch.manual_seed(1)
        return model.train(mode)(tokens, None, tokens[:, :5])[0].detach()

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        training = logits(True)
    return {
        "parameters": {name: tuple(tensor.shape) for name, tensor in model.named_parameters()},
        "outputs": logits(False).tolist(),
        "training": training.tolist(),
        "memory": sum(saved),
        "plugin": model.cfg.user_dir,
    }


def first_difference(one, other):
    return next((trait for trait in one if one[trait] != other[trait]), None)


def seeded(config):
    torch.manual_seed(1)
    return build(config)


def from_command_line(data, values):
    line = []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        line += [flag] if value is True else [] if value is False else [flag, value]
    return parse("train", data, "--arch roformer_transformer --optimizer adam", *line)


def from_yaml(data, values):
    """What fairseq-hydra-train makes of `model=roformer_transformer model.option=value ...`."""
    overrides = [f"model.{k}={v}" for k, v in values.items() if k != "user_dir"]
    plugin = values.get("user_dir")
    hydra_init()
    with initialize_config_module("fairseq.config", version_base="1.1"):
        config = compose(
            "config",
            [
                f"hydra.searchpath=[file://{CONFIG_DIR}]",
                "model=roformer_transformer",
                f"common.user_dir={plugin}",
                "task=translation",
                f"task.data={data}",
                *overrides,
            ],
        )
    add_defaults(config)
    return OmegaConf.create(OmegaConf.to_container(config, resolve=True, enum_to_str=True))


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Word vectors for w0 to w9, as --encoder-embed-path reads them."""
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    rows = [f"w{word} " + " ".join([str(word / 10)] * 32) for word in range(10)]
    path.write_text("10 32\n" + "\n".join(rows) + "\n", "utf-8")
    return path


@cache
def base_traits(data, route, given):
    return traits(seeded(route(data, {**BASE, **dict(given)})))


def changed(name, vectors):
    value = CASES[name].value
    return {**BASE, **CASES[name].given, name: str(vectors) if value is VECTORS else value}


def test_every_option_has_a_case():
    assert set(CASES) == set(OPTIONS)


ROUTES = pytest.mark.parametrize("route", [from_command_line, from_yaml])


@ROUTES
@pytest.mark.parametrize("name", CASES)
def test_an_option_changes_what_it_names_and_is_remembered(name, route, data, vectors, tmp_path):
    base = base_traits(data, route, tuple(CASES[name].given.items()))
    config = route(data, changed(name, vectors))
    model = seeded(config)
    found = traits(model)
    assert first_difference(base, found) == CASES[name].first
    if name not in PRUNED_ON_LOADING:
        reloaded = load(save(config, model, tmp_path / "checkpoint.pt"))
        assert first_difference(found, traits(reloaded)) is None


@ROUTES
def test_the_same_options_build_the_same_model(route, data):
    again = traits(seeded(route(data, BASE)))
    assert first_difference(base_traits(data, route, ()), again) is None


def test_options_left_out_keep_their_defaults(data):
    model = from_command_line(data, {}).model
    assert {n: model[n] for n in OPTIONS} == {n: o.default for n, o in OPTIONS.items()}


@pytest.mark.parametrize("name", KERNELS)
def test_attention_names_the_kernel_of_self_attention(data, name):
    """Attention to the source is always softmax."""
    model = build(from_command_line(data, {**BASE, "attention": name}))
    layers = [*model.encoder.layers, *model.decoder.layers]
    assert {type(layer.self_attn.kernel) for layer in layers} == {KERNELS[name]}
    to_source = [layer.encoder_attn for layer in model.decoder.layers]
    assert {type(attention.kernel) for attention in to_source} == {KERNELS["softmax"]}


def test_relu_dropout_is_another_name_of_activation_dropout(data):
    line = "--arch roformer_transformer --optimizer adam --relu-dropout 0.3"
    assert parse("train", data, line).model.activation_dropout == 0.3


def test_help_shows_the_options_of_the_model_and_no_others(data):
    parser = fairseq_options.get_training_parser()
    fairseq_options.parse_args_and_arch(parser, [str(data), "--arch", "roformer_transformer"])
    (group,) = [g for g in parser._action_groups if g.title == "Model-specific configuration"]
    shown = {action.dest for action in group._group_actions}
    # --user-dir is fairseq's own, shown among its common options.
    assert shown == set(OPTIONS) - {"user_dir"}
    assert all(action.help for action in group._group_actions)


def test_position_learned_limits_the_length_and_others_do_not(data):
    limits = {"max_source_positions": 16, "max_target_positions": 24}
    learned = build(from_command_line(data, {**BASE, **LEARNED, **limits}))
    assert learned.max_positions() == (16, 24)
    rotary = build(from_command_line(data, {**BASE, **limits}))
    assert min(rotary.max_positions()) > 10**6


def test_limits_reach_the_task_that_leaves_longer_sentences_out(data):
    limits = {"max_source_positions": 16, "max_target_positions": 24}
    config = from_command_line(data, {**BASE, **limits})
    assert tasks.setup_task(config.task).max_positions() == (16, 24)
