"""config/model/*.yaml: the architectures by name for fairseq-hydra-train."""

from dataclasses import fields
from pathlib import Path

import pytest
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_NAME_REGISTRY
from omegaconf import OmegaConf

from fairseq_rope import CONFIG_DIR
from fairseq_rope.models.config import ARCHITECTURES, RoFormerConfig

from .commands import PLUGIN, load, parse, run

UNTRAINED_LOSS = 4.6  # bits: log2 of the corpus's 24 words
NAMES = ["roformer_transformer", *ARCHITECTURES]


def yaml(name):
    return Path(CONFIG_DIR) / "model" / f"{name}.yaml"


@pytest.mark.parametrize("name", NAMES)
def test_yaml_lists_every_option_with_the_architectures_value(name):
    listed = OmegaConf.to_container(OmegaConf.load(yaml(name)), resolve=False)
    expected = {option.name: option.default for option in fields(RoFormerConfig)}
    expected |= ARCHITECTURES.get(name, {})
    expected |= {"_name": "roformer_transformer", "user_dir": "${common.user_dir}"}
    assert listed == expected
    assert yaml(name).read_text("utf-8").startswith("# @package _group_\n")


def test_there_is_one_yaml_for_each_architecture_that_fairseq_knows():
    registered = {a for a, m in ARCH_MODEL_NAME_REGISTRY.items() if m == "roformer_transformer"}
    assert (
        {path.stem for path in (Path(CONFIG_DIR) / "model").iterdir()} == set(NAMES) == registered
    )
    assert registered == {name for name in ARCH_CONFIG_REGISTRY if name.startswith("roformer_")}


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_gives_an_architecture_the_same_options_as_its_yaml(name, data):
    model = parse("train", data, f"--arch {name} --optimizer adam --user-dir", PLUGIN).model
    listed = OmegaConf.load(yaml(name))
    listed.user_dir, listed._name = str(PLUGIN), name
    assert OmegaConf.to_container(model) == OmegaConf.to_container(listed)


def test_an_option_on_the_command_line_wins_over_the_architecture(data):
    line = "--arch roformer_transformer_tiny --encoder-embed-dim 64 --optimizer adam"
    model = parse("train", data, line).model
    assert (model.encoder_embed_dim, model.decoder_embed_dim) == (64, 128)


def test_hydra_train_trains_by_name_and_generation_finds_its_settings(data, tmp_path):
    run(
        "hydra-train",
        f"--config-dir {CONFIG_DIR} model=roformer_transformer_tiny",
        f"common.user_dir={PLUGIN}",
        "model.rope_base=77 model.encoder_layers=1 model.decoder_layers=1",
        "model.share_all_embeddings=true",
        "task=translation criterion=cross_entropy optimizer=adam lr_scheduler=inverse_sqrt",
        "lr_scheduler.warmup_updates=10 optimization.lr=[0.01] dataset.max_tokens=600",
        "optimization.max_epoch=1 common.cpu=true common.log_format=json",
        f"task.data={data}",
        f"checkpoint.save_dir={tmp_path}",
        cwd=tmp_path,
    )
    state = load_checkpoint_to_cpu(tmp_path / "checkpoint_last.pt")
    assert state["extra_state"]["val_loss"] < UNTRAINED_LOSS
    assert state["cfg"].model.user_dir == str(PLUGIN)
    config = load(tmp_path / "checkpoint_last.pt").cfg
    assert (config.rope_base, config.encoder_layers, config.encoder_embed_dim) == (77, 1, 128)
