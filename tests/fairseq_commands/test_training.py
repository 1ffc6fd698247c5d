"""fairseq-train: precision, memory, several processes, validation in between."""

import socket
import sys

import fairseq_cli.train
import fairseq_cli.validate
import pytest
import torch
from fairseq import checkpoint_utils, tasks

from fairseq_rope.positions import POSITIONS

from .commands import (
    PLUGIN,
    RECORD,
    build,
    finish,
    load,
    logged,
    parse,
    position,
    start,
    train,
    training,
    weights,
)

VALIDATION = "--task translation --batch-size 75 --required-batch-size-multiple 1 --cpu"
QUICK = "--max-update 4 --disable-validation"


def state(folder):
    return checkpoint_utils.load_checkpoint_to_cpu(str(folder / "checkpoint_last.pt"))


def test_training_lowers_the_loss_of_every_epoch(trained):
    losses = [float(epoch["train_loss"]) for epoch in logged(trained.log, "train")]
    assert len(losses) == 2 and losses[1] < losses[0] - 0.2


@pytest.mark.parametrize("name", POSITIONS)
def test_every_parameter_gets_a_gradient(name, data):
    """Then data-parallel training needs no --find-unused-parameters."""
    config = parse("train", *training(data, "unused", position(name)))
    task = tasks.setup_task(config.task)
    task.load_dataset("valid")
    sample = task.dataset("valid").collater([task.dataset("valid")[i] for i in range(8)])
    model = task.build_model(config.model)
    loss, _, _ = task.build_criterion(config.criterion)(model, sample)
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if not name.endswith("k_proj.bias"):  # softmax does not see what all keys have in common
            assert parameter.grad.abs().max() > 0, name


def test_checkpointed_activations_train_to_the_same_weights(data, tmp_path):
    train(data, tmp_path / "plain", QUICK)
    train(data, tmp_path / "checkpointed", QUICK, "--checkpoint-activations")
    one, other = (
        weights(tmp_path / name / "checkpoint_last.pt") for name in ("plain", "checkpointed")
    )
    torch.testing.assert_close(other, one, atol=0, rtol=0)


BLEU = """--eval-bleu --eval-bleu-args {"beam":3,"max_len_b":10}"""


def test_beam_search_within_validation_leaves_training_as_it_was(data, tmp_path):
    schedule = "--max-epoch 2 --save-interval-updates 4 --validate-interval-updates 4"
    train(data, tmp_path / "plain", schedule)
    train(data, tmp_path / "bleu", schedule, BLEU, "--best-checkpoint-metric bleu")
    names = [tmp_path / name / "checkpoint_last.pt" for name in ("plain", "bleu")]
    plain, bleu = (torch.load(name, weights_only=False) for name in names)
    torch.testing.assert_close(dict(bleu["model"]), dict(plain["model"]), atol=0, rtol=0)
    assert 0 <= bleu["extra_state"]["val_loss"] <= 100


def test_a_checkpoint_trained_with_bleu_can_be_loaded(data, tmp_path):
    train(data, tmp_path, BLEU, "--max-epoch 1")
    assert len(load(tmp_path / "checkpoint_last.pt").encoder.layers) == 2


def test_validate_finds_the_loss_of_training(data, trained, caplog):
    config = parse("validate", data, "--path", trained.last, VALIDATION)
    caplog.set_level("INFO")
    fairseq_cli.validate.main(config)
    found = [record.getMessage() for record in caplog.records if "| loss " in record.getMessage()]
    expected = logged(trained.log, "valid")[-1]["valid_loss"]
    assert found and f"| loss {expected} |" in found[-1]


@pytest.mark.parametrize("option", ["--encoder-layerdrop", "--decoder-layerdrop"])
def test_layerdrop_trains_and_keeps_all_layers_for_generation(option, data, tmp_path):
    train(data, tmp_path, QUICK, option, "0.5")
    model = load(tmp_path / "checkpoint_last.pt")
    assert len(model.encoder.layers) == len(model.decoder.layers) == 2
    tokens = torch.tensor([[4, 5, 2]])
    assert torch.equal(model(tokens, None, tokens)[0], model(tokens, None, tokens)[0])


# Flattening the gradients is fairseq's default with --fp16, and asks for a GPU.
FP16 = "--fp16 --fp16-no-flatten-grads"


@pytest.mark.parametrize("option", [FP16, "--memory-efficient-fp16", "--amp"])
def test_half_precision_trains_on_a_cpu_as_full_precision_does(option, data, tmp_path):
    train(data, tmp_path / "full", "--max-epoch 1")
    train(data, tmp_path / "half", "--max-epoch 1", option)
    full, half = (state(tmp_path / name)["extra_state"]["val_loss"] for name in ("full", "half"))
    assert half == pytest.approx(full, abs=0.02)


def test_bfloat16_trains_on_a_cpu_as_full_precision_does(data, tmp_path):
    """fairseq's --bf16 asks for a TPU; set in a configuration, it does not."""
    train(data, tmp_path / "full", "--max-epoch 1")
    config = parse("train", *training(data, tmp_path / "half", "--max-epoch 1"))
    config.common.bf16 = True
    fairseq_cli.train.main(config)
    full, half = (state(tmp_path / name)["extra_state"]["val_loss"] for name in ("full", "half"))
    assert half == pytest.approx(full, abs=0.05)


def test_half_precision_weights_are_stored_in_full(data, tmp_path):
    train(data, tmp_path, QUICK, FP16)
    stored = weights(tmp_path / "checkpoint_last.pt")
    types = {name: tensor.dtype for name, tensor in stored.items()}
    assert types.pop("position_settings") == torch.float32
    assert set(types.values()) == {torch.float32}


def test_a_moving_average_of_the_weights_is_kept(data, tmp_path):
    train(data, tmp_path, QUICK, "--store-ema --ema-decay 0.9 --ema-fp32")
    saved = state(tmp_path)
    average, last = saved["extra_state"]["ema"], saved["model"]
    settings = average["position_settings"].round()
    assert torch.equal(settings, last["position_settings"])
    assert not torch.equal(
        average["decoder.embed_tokens.weight"], last["decoder.embed_tokens.weight"]
    )


def test_sentences_over_the_limit_are_left_out_of_training_with_a_note(data, tmp_path, caplog):
    caplog.set_level("WARNING")
    train(data, tmp_path, QUICK, "--max-source-positions 5 --max-target-positions 5")
    assert "samples have invalid sizes and will be skipped, max_positions=(5, 5)" in caplog.text


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.parametrize("positions", ["", "--position relative --decoder-position t5"])
def test_two_processes_train_as_one_with_twice_the_batches(positions, data, tmp_path):
    """Sentences of different lengths in the two; gradients are summed, weights stay equal."""
    schedule = f"{positions} --max-epoch 1 --optimizer sgd --lr 2 --dropout 0 --disable-validation"
    together = f"""--distributed-backend gloo --ddp-backend legacy_ddp --distributed-no-spawn
        --distributed-world-size 2 --distributed-init-method tcp://127.0.0.1:{free_port()}"""
    arguments = training(data, tmp_path / "two", schedule, together, "--user-dir", PLUGIN)
    records = [tmp_path / "rank0.pt", tmp_path / "rank1.pt"]
    processes = [
        start(
            [sys.executable, RECORD, record, "fairseq_cli.train"],
            *arguments,
            f"--distributed-rank {rank}",
        )
        for rank, record in enumerate(records)
    ]
    for process in processes:
        finish(process)
    first, second = (torch.load(record)["weights"] for record in records)
    torch.testing.assert_close(second, first, atol=0, rtol=0)
    train(data, tmp_path / "one", schedule, "--update-freq 2")
    alone = weights(tmp_path / "one" / "checkpoint_last.pt")
    torch.testing.assert_close(first, dict(alone), atol=1e-6, rtol=0)
    torch.manual_seed(1)
    untrained = build(parse("train", *training(data, tmp_path, positions))).state_dict()
    tables = [name for name in first if "embed_positions" in name]
    assert len(tables) == (3 if positions else 0)  # two layers' and the decoder's
    for name in ["encoder.layers.0.self_attn.q_proj.weight", *tables]:
        assert (first[name] - untrained[name]).abs().max() > 1e-3
