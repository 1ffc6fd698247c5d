"""What a checkpoint keeps, who may load it, and what is said to those who may not."""

import re
import sys

import pytest
import torch
from fairseq import tasks
from omegaconf import OmegaConf
from reference import position_options

from fairseq_rope.positions import POSITIONS

from .commands import (
    GENERATION,
    PLUGIN,
    RECORD,
    build,
    generate,
    hypotheses,
    load,
    logged,
    parse,
    position,
    run,
    save,
    train,
    training,
    weights,
)

STOCK = """--arch transformer --encoder-attention-heads 4 --decoder-attention-heads 4
    --share-all-embeddings"""


def altered(checkpoint, path, change):
    """A copy of a checkpoint after change(state)."""
    state = torch.load(checkpoint, weights_only=True)
    change(state)
    torch.save(state, path)
    return path


@pytest.fixture(scope="module")
def stock(data, tmp_path_factory):
    """A checkpoint of fairseq's own transformer, trained by fairseq-train."""
    folder = tmp_path_factory.mktemp("stock")
    train(data, folder, STOCK, "--max-update 1 --disable-validation")
    return folder / "checkpoint_last.pt"


def encoder_output(model):
    return model.encoder(torch.tensor([[4, 5, 6, 7, 8, 2]]))["encoder_out"][0]


def test_generation_in_another_process_encodes_as_training_did(data, trained, tmp_path):
    """fairseq-generate is told no setting of the model."""
    record = tmp_path / "record.pt"
    line = [data, "--path", trained.last, "--user-dir", PLUGIN, GENERATION]
    command = [sys.executable, RECORD, record, "fairseq_cli.generate"]
    run(command, *line, "--gen-subset valid --batch-size 5")
    seen = [torch.load(path)["encoded"] for path in (trained.record, record)]
    assert seen[0].keys() == seen[1].keys() and len(seen[0]) == 24
    for tokens, states in seen[0].items():
        torch.testing.assert_close(seen[1][tokens], states, atol=1e-5, rtol=0)


def test_a_checkpoint_holds_the_weights_that_training_ended_with(trained):
    torch.testing.assert_close(dict(weights(trained.last)), torch.load(trained.record)["weights"])


def test_a_checkpoint_is_data_only(trained):
    """torch loads it with weights_only=True: no pickled object of fairseq's or ours."""
    state = torch.load(trained.last, weights_only=True)
    assert type(state["cfg"]["model"]) is dict
    assert state["cfg"]["model"]["rope_base"] == 50


def test_no_tensor_of_a_checkpoint_is_of_the_rotation(trained):
    names = weights(trained.last).keys()
    assert not [n for n in names if re.search("rot|freq|phase|angle|embed_positions", n)]


def test_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(data, trained, tmp_path):
    half, whole = trained.halves[:2]
    train(data, tmp_path, trained.settings, "--max-epoch 1 --restore-file", half)
    resumed = weights(tmp_path / "checkpoint1.pt")
    torch.testing.assert_close(resumed, weights(whole), atol=0, rtol=0)


def test_each_validation_uses_the_weights_of_its_time(data, trained):
    """Nothing packed or cached in the first validation is used in the second."""
    losses = [float(epoch["valid_loss"]) for epoch in logged(trained.log, "valid")]
    config = parse("train", data, "--arch roformer_transformer_tiny --optimizer adam")
    task = tasks.setup_task(config.task)
    task.load_dataset("valid")
    sample = task.dataset("valid").collater([task.dataset("valid")[i] for i in range(24)])
    again = []
    for checkpoint in trained.halves:
        scores, _ = load(checkpoint)(**sample["net_input"])
        chosen = scores.log_softmax(-1).gather(-1, sample["target"].unsqueeze(-1)).squeeze(-1)
        smooth = scores.log_softmax(-1).sum(-1)
        words = sample["target"].ne(task.target_dictionary.pad())
        rest = 0.1 / (scores.size(-1) - 1)
        loss = -((0.9 - rest) * chosen + rest * smooth)[words].mean() / torch.tensor(2.0).log()
        again.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] - 0.1
    assert again == pytest.approx(losses, abs=2e-3)


@pytest.mark.parametrize(
    "override",
    [
        {"rope_base": 77},
        {"rope_scaling": "linear", "rope_scaling_factor": 2},
        {"rope_scaling": "ntk", "rope_scaling_factor": 2.0},
        {"rope_scaling": "yarn", "rope_scaling_factor": 2, "rope_original_positions": 8},
    ],
)
def test_the_turns_can_be_changed_when_a_checkpoint_is_loaded(override, trained):
    as_trained, changed = load(trained.last), load(trained.last, **override)
    for name, value in override.items():
        assert getattr(changed.cfg, name) == value
    assert not torch.allclose(encoder_output(changed), encoder_output(as_trained), atol=1e-3)


def test_model_overrides_reach_generation(data, trained, tmp_path):
    override = {"rope_scaling": "ntk", "rope_scaling_factor": 2.0}
    said = "--model-overrides " + str(override).replace(" ", "")
    as_trained = generate(data, trained.last, tmp_path / "one")
    assert hypotheses(generate(data, trained.last, tmp_path / "two", said)) != hypotheses(
        as_trained
    )


@pytest.mark.parametrize(
    "override, said",
    [
        ({"rope_layout": "interleaved"}, "`rope_layout`='half', but the model has 'interleaved'"),
        ({"rope_fraction": 1.0}, "`rope_fraction`=0.5, but the model has 1.0"),
        ({"rope_cross_attention": False}, "`rope_cross_attention`=True, but the model has False"),
        ({"rope_values": True}, "`rope_values`=False, but the model has True"),
    ],
)
def test_overrides_that_contradict_the_weights_are_refused(override, said, trained):
    with pytest.raises(ValueError, match=re.escape(said) + ".*Leave the option out"):
        load(trained.last, **override)


@pytest.mark.parametrize("other", [name for name in POSITIONS if name != "rotary"])
@pytest.mark.parametrize("option", ["--restore-file", "--finetune-from-model"])
def test_a_checkpoint_of_another_scheme_is_refused_in_training(other, option, data, tmp_path):
    train(data, tmp_path / "old", position(other), "--max-update 1 --disable-validation")
    old = tmp_path / "old" / "checkpoint_last.pt"
    with pytest.raises(Exception, match="Cannot load model parameters") as failure:
        train(data, tmp_path / "new", option, old)
    (name,) = position_options(other)
    said = f"`{name}`='{other}', but the model has 'rotary'.*{name}={other}"
    assert re.search(said, str(failure.value.__context__))
    assert not list((tmp_path / "new").iterdir())


def test_a_stock_checkpoint_is_refused_by_a_rotary_model(data, stock, tmp_path):
    with pytest.raises(Exception, match="Cannot load model parameters") as failure:
        train(data, tmp_path, "--finetune-from-model", stock)
    assert re.search("`position`='sinusoidal'.*has 'rotary'", str(failure.value.__context__))


def test_a_stock_checkpoint_trains_on_with_sinusoidal_positions(data, stock, tmp_path):
    line = "--position sinusoidal --max-update 1 --disable-validation"
    train(data, tmp_path, line, "--lr 1e-30 --warmup-updates 1 --finetune-from-model", stock)
    old, new = weights(stock), weights(tmp_path / "checkpoint_last.pt")
    assert set(new) - set(old) == {"position_settings"}
    for name in new.keys() - {"position_settings"}:
        torch.testing.assert_close(new[name], old[name], atol=1e-6, rtol=0)


def test_a_stray_rotary_tensor_in_an_old_checkpoint_is_ignored_with_a_note(
    trained, tmp_path, caplog
):
    def add_tables(state):
        state["model"]["encoder.layers.0.self_attn.rotary.inv_freq"] = torch.ones(4)
        state["model"]["decoder.layers.1.self_attn.rope.inv_freq"] = torch.ones(4)

    old = altered(trained.last, tmp_path / "old.pt", add_tables)
    assert torch.equal(encoder_output(load(old)), encoder_output(load(trained.last)))
    assert "encoder.layers.0.self_attn.rotary.inv_freq" in caplog.text


def test_a_checkpoint_without_newer_options_and_with_forgotten_ones_loads(trained, tmp_path):
    def age(state):
        del state["cfg"]["model"]["rope_values"]
        state["cfg"]["model"]["an_option_of_long_ago"] = 3

    old = altered(trained.last, tmp_path / "old.pt", age)
    assert torch.equal(encoder_output(load(old)), encoder_output(load(trained.last)))


def test_a_checkpoint_that_does_not_name_its_scheme_is_read_as_its_options_say(trained, tmp_path):
    old = altered(trained.last, tmp_path / "o.pt", lambda s: s["model"].pop("position_settings"))
    assert torch.equal(encoder_output(load(old)), encoder_output(load(trained.last)))


def test_half_precision_weights_keep_the_words_about_positions(trained, tmp_path):
    model = load(trained.last).half()
    path = save(OmegaConf.create({"model": vars(model.cfg)}), model, tmp_path / "half.pt")
    stored = torch.load(path, weights_only=True)["model"]["position_settings"]
    assert torch.equal(stored, weights(trained.last)["position_settings"])


def test_layers_to_keep_prunes_both_stacks_when_a_checkpoint_is_loaded(trained):
    model = load(trained.last, encoder_layers_to_keep="1", decoder_layers_to_keep="0,1")
    full = load(trained.last)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 2)
    torch.testing.assert_close(
        model.encoder.layers[0].state_dict(), full.encoder.layers[1].state_dict(), atol=0, rtol=0
    )


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_one_stack_can_be_pruned_alone(side, trained):
    model = load(trained.last, **{f"{side}_layers_to_keep": "1"})
    counts = {"encoder": len(model.encoder.layers), "decoder": len(model.decoder.layers)}
    assert counts == {"encoder": 2, "decoder": 2, side: 1}


def test_a_pruned_model_that_was_trained_on_can_be_loaded(data, trained, tmp_path):
    keep = "--encoder-layers-to-keep 1 --decoder-layers-to-keep 0,1"
    train(
        data, tmp_path, trained.settings, keep, "--max-epoch 1 --finetune-from-model", trained.last
    )
    assert len(load(tmp_path / "checkpoint_last.pt").encoder.layers) == 1


def test_a_model_trained_with_fewer_layers_than_named_can_be_loaded(data, tmp_path):
    keep = "--encoder-layers-to-keep 1 --decoder-layers-to-keep 1"
    train(data, tmp_path, keep, "--max-update 1 --disable-validation")
    assert len(load(tmp_path / "checkpoint_last.pt").encoder.layers) == 1


def test_pretrained_embeddings_need_not_be_there_when_a_checkpoint_is_loaded(data, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("1 32\nw1 " + " ".join(["0.5"] * 32) + "\n", "utf-8")
    config = parse("train", *training(data, tmp_path, "--encoder-embed-path"), vectors)
    checkpoint = save(config, build(config), tmp_path / "checkpoint.pt")
    vectors.unlink()
    with pytest.raises(ValueError, match="`encoder_embed_path`=.*vectors.txt.*--model-overrides"):
        load(checkpoint)
    weight = load(checkpoint, encoder_embed_path=None).encoder.embed_tokens.weight
    assert weight.eq(0.5).all(dim=1).sum() == 1
