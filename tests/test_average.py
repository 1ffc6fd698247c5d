"""`fairseq-rope average`: weights of every type, and files that cannot be averaged."""

import argparse

import numpy as np
import pytest
import torch

from fairseq_rope.cli.main import main


def save(path, value, *, dtype=torch.float32, step=0, **entries):
    model = {
        "weight": torch.full((2, 3), value, dtype=dtype),
        "updates": torch.tensor(step),
        "flag": torch.tensor(True),
    }
    state = {"model": model, "cfg": {"model": {"_name": "x"}}, "last_optimizer_state": {"step": 1}}
    torch.save({**state, **entries}, path)
    return str(path)


def average(tmp_path, *arguments):
    output = tmp_path / "new" / "average.pt"
    assert main(["average", "--inputs", *arguments, "--output", str(output)]) == 0
    assert [path.name for path in output.parent.iterdir()] == ["average.pt"]
    return torch.load(output, weights_only=True)


def fails(tmp_path, capsys, *arguments):
    output = tmp_path / "new" / "average.pt"
    assert main(["average", "--inputs", *arguments, "--output", str(output)]) == 1
    assert not output.exists()
    return capsys.readouterr().err


def test_mean_of_weights_and_the_last_of_everything_else(tmp_path):
    paths = [save(tmp_path / f"{n}.pt", float(n), step=n, extra_state=n) for n in (1, 2, 6)]
    averaged = average(tmp_path, *paths)
    assert torch.equal(averaged["model"]["weight"], torch.full((2, 3), 3.0))
    assert averaged["model"]["updates"] == 6
    assert averaged["model"]["updates"].dtype == torch.int64
    assert averaged["model"]["flag"].dtype == torch.bool
    assert averaged["extra_state"] == 6
    assert averaged["last_optimizer_state"] is None


def test_half_precision_is_kept_and_does_not_overflow(tmp_path):
    paths = [save(tmp_path / f"{n}.pt", 60000.0, dtype=torch.float16) for n in range(4)]
    weight = average(tmp_path, *paths)["model"]["weight"]
    assert weight.dtype == torch.float16
    assert torch.equal(weight, torch.full((2, 3), 60000.0, dtype=torch.float16))


def test_one_checkpoint_is_its_own_mean(tmp_path):
    path = save(tmp_path / "1.pt", 0.1)
    assert torch.equal(average(tmp_path, path)["model"]["weight"], torch.full((2, 3), 0.1))


@pytest.mark.parametrize(
    ("option", "names", "mean"),
    [
        ("--num-update-checkpoints", ["checkpoint_1_900.pt", "checkpoint_2_1000.pt"], 1.5),
        ("--num-epoch-checkpoints", ["checkpoint9.pt", "checkpoint10.pt"], 1.5),
    ],
)
def test_the_last_of_a_folder_are_the_highest_numbers(tmp_path, option, names, mean):
    for name in (
        "checkpoint_last.pt",
        "checkpoint_best.pt",
        "checkpoint_1_90.pt",
        "checkpoint8.pt",
    ):
        save(tmp_path / name, 100.0)
    for value, name in enumerate(names, 1):
        save(tmp_path / name, float(value))
    weight = average(tmp_path, str(tmp_path), option, "2")["model"]["weight"]
    assert torch.equal(weight, torch.full((2, 3), mean))


def test_options_of_older_fairseq_models_load(tmp_path):
    path = save(tmp_path / "1.pt", 1.0, args=argparse.Namespace(arch="transformer"))
    output = tmp_path / "out.pt"
    assert main(["average", "--inputs", path, "--output", str(output)]) == 0


def test_a_missing_file_is_named(tmp_path, capsys):
    path = save(tmp_path / "1.pt", 1.0)
    assert "gone.pt: no such checkpoint" in fails(tmp_path, capsys, str(tmp_path / "gone.pt"), path)


def test_too_few_checkpoints_are_counted(tmp_path, capsys):
    save(tmp_path / "checkpoint_1_100.pt", 1.0)
    said = fails(tmp_path, capsys, str(tmp_path), "--num-update-checkpoints", "5")
    assert "must be from 1 to the 1 in" in said
    assert "but is 5 instead" in said


def test_checkpoints_of_two_models_are_refused(tmp_path, capsys):
    one, other = save(tmp_path / "1.pt", 1.0), tmp_path / "2.pt"
    torch.save({"model": {"weight": torch.zeros(4), "bias": torch.zeros(1)}}, other)
    said = fails(tmp_path, capsys, one, str(other))
    assert "no checkpoints of one model: they differ in bias, flag, updates, weight" in said


def test_another_kind_of_file_is_refused(tmp_path, capsys):
    torch.save({"weight": torch.zeros(1)}, tmp_path / "other.pt")
    assert "not a checkpoint of fairseq" in fails(tmp_path, capsys, str(tmp_path / "other.pt"))


@pytest.mark.parametrize("option, value", [("rope_fraction", 0.5), ("decoder_attention_heads", 8)])
def test_weights_of_one_shape_and_two_meanings_are_not_mixed(tmp_path, capsys, option, value):
    meanings = {"rope_fraction": 1.0, "decoder_attention_heads": 4, "dropout": 0.1}
    one = save(tmp_path / "1.pt", 1.0, cfg={"model": meanings})
    two = save(tmp_path / "2.pt", 2.0, cfg={"model": {**meanings, option: value}})
    assert f"`{option}`=" in fails(tmp_path, capsys, one, two)
    more_dropout = save(tmp_path / "3.pt", 2.0, cfg={"model": {**meanings, "dropout": 0.3}})
    average(tmp_path, one, more_dropout)


def test_values_of_numpy_are_read(tmp_path):
    counts = {"bleu_counts": np.arange(4), "loss": np.float64(2.5)}
    averaged = average(tmp_path, save(tmp_path / "1.pt", 1.0, extra_state=counts))
    assert averaged["extra_state"]["loss"] == 2.5


@pytest.mark.parametrize("content", [b"", b"root:x:0:0:root:/root:/bin/bash\n", b"PK\3\4 cut"])
def test_a_damaged_file_is_named(tmp_path, capsys, content):
    (tmp_path / "bad.pt").write_bytes(content)
    assert "bad.pt: damaged, or not a checkpoint" in fails(
        tmp_path, capsys, str(tmp_path / "bad.pt")
    )


def test_a_folder_without_a_number_of_checkpoints_is_named(tmp_path, capsys):
    assert "is a folder; say --num-update-checkpoints" in fails(tmp_path, capsys, str(tmp_path))
