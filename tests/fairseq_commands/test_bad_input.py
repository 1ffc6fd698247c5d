"""A user's mistake gets a message with option, value and remedy; nothing is left behind."""

import re

import pytest

from fairseq_rope.attention import KERNELS
from fairseq_rope.positions import POSITIONS

from .commands import PLUGIN, generate, hypotheses, load, parse, run, train, training
from .test_options import OPTIONS, from_yaml

REFUSED = {
    "--encoder-embed-dim 36 --decoder-embed-dim 36": r"`encoder_embed_dim`=36 with "
    r"`encoder_attention_heads`=4 gives 9; use encoder_embed_dim=40 \(head size 10\)",
    "--decoder-attention-heads 32": r"`decoder_embed_dim`=32 with `decoder_attention_heads`=32 "
    r"gives 1; use decoder_embed_dim=64 \(head size 2\)",
    "--encoder-attention-heads 5": r"`encoder_embed_dim`=32 must be a multiple of "
    r"`encoder_attention_heads`=5; the nearest is 30",
    "--encoder-attention-heads 0": r"`encoder_attention_heads` must be at least 1, but is 0",
    "--encoder-layers 0": r"`encoder_layers` must be at least 1, but is 0",
    "--rope-fraction 0.6": r"`rope_fraction`=0.6 of a head of 8 gives 4.8 .*nearest fraction is "
    r"0.5 \(4 dimensions\)",
    "--rope-fraction 0.375": r"`rope_fraction`=0.375 of a head of 8 gives 3 .*even whole number",
    "--rope-fraction 0": r"`rope_fraction` must be above 0 and at most 1, but is 0",
    "--rope-fraction 1.5": r"`rope_fraction` must be above 0 and at most 1, but is 1.5",
    "--rope-base 1": r"`rope_base` must be a number above 1, but is 1",
    "--rope-base nan": r"`rope_base` must be a number above 1, but is nan",
    "--rope-scaling yarn": r"`rope_scaling`='yarn' needs `rope_scaling_factor`.*for example 4",
    "--rope-scaling-factor 4": r"`rope_scaling_factor`=4.* no effect with `rope_scaling`='none'; "
    r"choose rope_scaling linear, ntk or yarn",
    "--rope-scaling linear --rope-scaling-factor 0.5": r"`rope_scaling`='linear'"
    r".*`rope_scaling_factor`=0.5.*at least 1",
    "--rope-scaling yarn --rope-scaling-factor 2 --rope-original-positions 0": r"'yarn'.*"
    r"original_positions.*>= 1, but is 0",
    "--position sinusoidal --rope-values": r"`rope_values`=True has an effect with "
    r"`position`='rotary' only, but position is 'sinusoidal'",
    "--position learned --rope-cross-attention": r"`rope_cross_attention`=True has an "
    r"effect with `position`='rotary' or 'xpos' only",
    "--position none --rope-scaling ntk --rope-scaling-factor 2": r"`rope_scaling`=ntk has "
    r"an effect with `position`='rotary' only",
    "--position xpos": r"`position`='xpos' cannot serve the encoder.*`decoder_position`='xpos'",
    "--position relative --relative-clip 0": r"`relative_clip` must be at least 1, but is 0",
    "--position t5 --relative-clip 8": r"`relative_clip`=8 has an effect with "
    r"`position`='relative' only, but position is 't5'",
    "--share-all-embeddings --decoder-embed-dim 64": r"`share_all_embeddings`=True needs "
    r"equal widths, but `encoder_embed_dim`=32 and `decoder_embed_dim`=64",
    "--decoder-layers-to-keep zero": r"`decoder_layers_to_keep`.*'zero'",
    "--encoder-embed-path no/such/file": r"`encoder_embed_path`='no/such/file'",
    "--rope-scaling ntk --rope-scaling-factor 2 --rope-fraction 0.25": r"ntk.*at least 4 rotated",
    "--encoder-layers-to-keep 7": r"`encoder_layers_to_keep`.*'7'",
    "--dropout 1.5": r"`dropout`.*1.5",
    "--attention-dropout -0.5": r"`attention_dropout`.*-0.5",
    "--encoder-layerdrop 2": r"`encoder_layerdrop`.*2",
}


@pytest.mark.parametrize("options, said", REFUSED.items(), ids=list(REFUSED))
def test_what_does_not_fit_is_refused_before_anything_is_written(options, said, data, tmp_path):
    with pytest.raises(ValueError, match=said):
        train(data, tmp_path / "model", "--max-update 1 --disable-validation --no-save", options)
    assert not list((tmp_path / "model").iterdir())


SHARED = "--share-all-embeddings"
UNKNOWN = {
    "--position rotery": ("argument --position: invalid choice: 'rotery'", POSITIONS),
    "--attention flash": ("argument --attention: invalid choice: 'flash'", KERNELS),
    "--rope-scaling xpos": ("--rope-scaling: invalid choice: 'xpos'", ["none", "ntk", "yarn"]),
    "--rope-layout neox": ("--rope-layout: invalid choice: 'neox'", ["interleaved", "half"]),
    "--xpos": ("unrecognized arguments: --xpos", []),
    "--rope-percentage 0.5": ("unrecognized arguments: --rope-percentage 0.5", []),
    "--rope-base many": ("argument --rope-base: invalid float value: 'many'", []),
    "--arch roformer_transformr": (
        "argument --arch/-a: invalid choice: 'roformer_transformr'",
        ["'roformer_transformer'", "'roformer_transformer_tiny'"],
    ),
}


@pytest.mark.parametrize("options", UNKNOWN)
def test_unknown_options_and_choices_are_named_with_those_that_exist(options, data, capsys):
    message, choices = UNKNOWN[options]
    with pytest.raises(SystemExit) as stop:
        parse("train", *training(data, "unused", options))
    printed = capsys.readouterr().err
    assert stop.value.code == 2
    assert message in printed
    for choice in choices:
        assert choice in printed.partition("choose from")[2]


@pytest.mark.parametrize("option", ["position", "rope_scaling", "attention"])
def test_an_unknown_choice_in_yaml_is_named_with_those_that_exist(option, data):
    with pytest.raises(Exception, match=f"model.{option}=cosine") as failure:
        from_yaml(data, {option: "cosine"})
    choices = OPTIONS[option].type.__members__
    said = f"Invalid value 'cosine', expected one of [{', '.join(choices)}]"
    assert said in str(failure.value.__cause__)


@pytest.mark.parametrize("option", ["position", "attention", "rope_layout", "rope_scaling"])
def test_an_unknown_choice_in_model_overrides_is_named(option, trained):
    with pytest.raises(ValueError, match=f"`{option}`.*must be one of.*'cosine'"):
        load(trained.last, **{option: "cosine"})


def test_a_refused_option_ends_the_process_and_leaves_no_file(data, tmp_path):
    arguments = training(data, tmp_path / "model", "--rope-fraction 0.6", "--user-dir", PLUGIN)
    printed = run("train", *arguments, fails=True)
    assert printed.strip().splitlines()[-1].startswith("ValueError: `rope_fraction`=0.6")
    assert not list((tmp_path / "model").iterdir())


@pytest.mark.parametrize(
    "option, value, wanted",
    [
        ("rope_base", "abc", "float"),
        ("rope_fraction", "0.5", "float"),
        ("rope_original_positions", 2.7, "int"),
        ("rope_values", "False", "bool"),
        ("dropout", "x", "float"),
        ("encoder_attention_heads", "2", "int"),
        ("encoder_layers_to_keep", 1, "str"),
    ],
)
def test_an_override_of_another_type_is_named(option, value, wanted, trained):
    with pytest.raises(ValueError, match=f"`{option}` must be of type {wanted}, but is {value!r}"):
        load(trained.last, **{option: value})


def test_a_base_that_was_changed_after_training_is_noted(trained, caplog):
    load(trained.last, rope_base=77.0)
    assert "was trained with rope_base=50.0, and is used with 77.0 now" in caplog.text


def test_shared_embeddings_need_one_dictionary(data, tmp_path):
    for language in ("src", "tgt"):
        words = (data / f"dict.{language}.txt").read_text("utf-8").splitlines(keepends=True)
        kept = words[:10] if language == "tgt" else words
        (tmp_path / f"dict.{language}.txt").write_text("".join(kept), "utf-8")
    with pytest.raises(ValueError, match="source has 24 and target 14 words.*--joined-dictionary"):
        train(tmp_path, tmp_path / "model", "--source-lang src --target-lang tgt", SHARED)


def test_a_sentence_over_the_limit_of_the_task_is_named_at_generation(data, trained, tmp_path):
    limits = "--max-source-positions 5 --max-target-positions 500"
    with pytest.raises(Exception, match=r"Size of sample #\d+ is invalid .*max_positions=\(5, 500"):
        generate(data, trained.last, tmp_path, limits)


def test_learned_positions_keep_their_limit_at_generation(data, tmp_path):
    limit = "--position learned --max-source-positions 6 --max-target-positions 6"
    train(data, tmp_path, limit, "--max-update 1 --disable-validation")
    last = tmp_path / "checkpoint_last.pt"
    with pytest.raises(Exception, match=r"is invalid .*max_positions=\(6, 6\)"):
        generate(data, last, tmp_path, "--max-source-positions 100")
    options = "--skip-invalid-size-inputs-valid-test --max-len-b 12"
    found = hypotheses(generate(data, last, tmp_path, options))
    assert 0 < len(found) < 24
    assert all(len(text.split()) < 6 for ((_, text),) in found.values())


def test_a_missing_checkpoint_is_named(data, tmp_path):
    with pytest.raises(OSError, match=re.escape(f"Model file not found: {tmp_path}/none.pt")):
        generate(data, tmp_path / "none.pt", tmp_path)
