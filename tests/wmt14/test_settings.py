"""What train.sh and translate.sh make of their settings, and the YAML file of the same run."""

import sys

import pytest
import yaml

from .conftest import SCRIPTS


def data(work):
    """What train.sh and translate.sh look for."""
    (work / "data").mkdir()
    (work / "data" / "dict.en.txt").touch()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"GPUS": "two"}, "GPUS must be a whole number, but is two"),
        ({"GPUS": -1}, "GPUS must be a whole number, but is -1"),
        ({"GPU_TOKENS": 0}, "GPU_TOKENS must be a whole number above 0, but is 0"),
        ({"BATCH_TOKENS": "a[$(touch x)]"}, "BATCH_TOKENS must be a whole number above 0"),
        ({"BATCH_TOKENS": 7, "GPUS": 8}, "BATCH_TOKENS is 7, too few for 8 processes"),
        ({"NODES": "010"}, "NODES must be a whole number above 0, but is 010"),
        ({"NODES": 2}, "NODES is 2, but GPUS is 0"),
    ],
)
def test_wrong_settings_of_training_are_named(variables, message, run, tmp_path):
    data(tmp_path)
    assert message in run("train.sh", code=1, **{"WORK": tmp_path, "GPUS": 0, **variables})


@pytest.mark.parametrize("script", ["train.sh", "average.sh", "translate.sh", "score.sh"])
def test_a_wrong_model_is_named(script, run, tmp_path):
    data(tmp_path)
    printed = run(script, code=1, WORK=tmp_path, GPUS=0, MODEL="nonsense")
    assert f"{script}: MODEL must be base or big, but is nonsense" in printed


@pytest.fixture
def options(run, tmp_path):
    """options(capability, gpus): what train.sh prints and gives to fairseq-train on such GPUs."""
    commands = tmp_path / "bin"
    commands.mkdir()
    scripts = {"fairseq-train": 'printf "%s\\n" "$@"', "python": f'exec "{sys.executable}" "$@"'}
    for name, text in scripts.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    path = f"{commands}:/usr/bin:/bin"

    def make(capability, gpus):
        data(tmp_path)
        (commands / "torch.py").write_text(
            "class cuda:\n"
            f"    get_device_capability = lambda: {capability}\n"
            "    is_bf16_supported = lambda including_emulation=True: including_emulation\n"
        )
        printed = run("train.sh", WORK=tmp_path, GPUS=gpus, PATH=path, PYTHONPATH=commands)
        first, *words = printed.splitlines()
        values = [*words[1:], ""]
        return first, {word: value for word, value in zip(words, values) if word.startswith("--")}

    return make


@pytest.mark.parametrize(
    ("capability", "option"), [((7, 0), "--fp16"), ((8, 0), "--bf16"), ((9, 0), "--bf16")]
)
def test_bfloat16_only_where_the_hardware_has_it(capability, option, options):
    printed, given = options(capability, 8)
    assert {"--fp16", "--bf16"} & given.keys() == {option}
    assert given["--distributed-world-size"] == "8"
    assert printed.endswith("8 processes x 3125 tokens x update-freq 1 = 25000 tokens an update")


def test_the_yaml_file_is_the_run_of_the_script(options):
    _, given = options((8, 0), 1)
    text = (SCRIPTS / "config" / "roformer_base.yaml").read_text()
    config = yaml.safe_load(text)
    assert config["defaults"][0]["model"] == given["--arch"]
    chosen_here = {"data", "user_dir", "save_dir", "tensorboard_logdir"}
    for section in config.keys() - {"hydra", "defaults", "task"}:
        for name, value in config[section].items():
            if name in chosen_here:
                continue
            option = f"--{section if name == '_name' else name}".replace("_", "-")
            assert option in given
            if value is not True:
                theirs = str(value).strip("[]")
                assert given[option] == theirs or float(given[option]) == float(theirs), option
    # On more GPUs all three numbers change.
    for name in ("distributed_world_size=N", "max_tokens=T", "update_freq=[U]"):
        assert name in text.split("hydra:")[0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "settings, which prepare.sh wrote, is not there"),
        ("SEGMENTER=x touch${IFS}hacked", "settings is not what prepare.sh wrote"),
    ],
)
def test_settings_that_are_none(settings, message, run, tmp_path):
    data(tmp_path)
    if settings is not None:
        (tmp_path / "settings").write_text(f"{settings}\n")
    assert message in run("translate.sh", code=1, WORK=tmp_path)
