"""--task translation_concat: training on several sentences a line, through fairseq's commands."""

import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from fairseq import tasks
from fairseq.checkpoint_utils import load_checkpoint_to_cpu
from fairseq.trainer import Trainer
from omegaconf import OmegaConf

from fairseq_rope import CONFIG_DIR
from fairseq_rope.tasks import TranslationConcatConfig

from .commands import (
    GENERATION,
    PLUGIN,
    ROOT,
    generate,
    hypotheses,
    logged,
    parse,
    run,
    train,
    training,
    weights,
)

CONCAT = "--task translation_concat --concat-share 0.6 --concat-sentences 3"


@pytest.fixture(scope="module")
def concatenated(data, shared_folder):
    """A model trained by fairseq-train in a process that ended, with worker processes."""

    def make(folder):
        options = "--max-epoch 2 --save-interval-updates 4 --num-workers 2 --user-dir"
        printed = run("train", *training(data, folder, CONCAT, options, PLUGIN))
        (folder / "log").write_text(printed, "utf-8")

    return shared_folder("concatenated", make)


def test_an_epoch_has_as_many_examples_and_more_words(concatenated, trained):
    printed = (concatenated / "log").read_text("utf-8")
    losses = [float(epoch["train_loss"]) for epoch in logged(printed, "train")]
    assert losses[1] < losses[0]
    words = [float(logged(text, "train")[0]["train_wpb"]) for text in (printed, trained.log)]
    assert 1.5 < words[0] / words[1] < 2.1  # 1 + 0.6 * 1.5, less the inner ends of sentence
    assert logged(printed, "train")[0]["train_num_updates"] == "8"


def test_every_epoch_makes_batches_of_its_own_sizes(data, tmp_path, monkeypatch):
    """Batches by --max-tokens are filled and never over-full."""
    seen = []
    train_step = Trainer.train_step

    def keep(trainer, samples, *rest):
        seen.extend(sample["target"] for sample in samples)
        return train_step(trainer, samples, *rest)

    monkeypatch.setattr(Trainer, "train_step", keep)
    limits = "--batch-size 1000 --max-tokens 200 --max-epoch 2 --disable-validation"
    train(data, tmp_path, CONCAT, limits)
    sizes = [target.numel() for target in seen]
    assert max(sizes) <= 200 and sum(sizes) / len(sizes) > 170
    half = len(seen) // 2
    first, second = (
        {tuple(target.shape) for target in part} for part in (seen[:half], seen[half:])
    )
    assert first != second


def test_training_goes_on_from_mid_epoch_as_if_it_had_not_stopped(data, concatenated, tmp_path):
    half = concatenated / "checkpoint_2_12.pt"
    train(data, tmp_path, CONCAT, "--max-epoch 2 --restore-file", half)
    resumed = weights(tmp_path / "checkpoint2.pt")
    torch.testing.assert_close(resumed, weights(concatenated / "checkpoint2.pt"), atol=0, rtol=0)


def test_generation_needs_no_task_and_may_name_it(data, concatenated, tmp_path):
    checkpoint = concatenated / "checkpoint_last.pt"
    line = [data, "--path", checkpoint, "--user-dir", PLUGIN, GENERATION]
    plain = hypotheses(run("generate", *line))
    assert len(plain) == 24
    assert hypotheses(generate(data, checkpoint, tmp_path, CONCAT)) == plain


FROM_PRETRAINED = """
from fairseq_rope.models import RoFormerTransformer
model = RoFormerTransformer.from_pretrained({!r}, "checkpoint_last.pt", {!r})
print("task:", type(model.task).__name__)
print("translation:", model.translate("w1 w2 w3"))
"""


def test_from_pretrained_finds_the_task(data, concatenated, tmp_path):
    """In Python the checkpoint's task is asked for, in a process that has seen no --user-dir."""
    script = tmp_path / "script.py"
    script.write_text(FROM_PRETRAINED.format(str(concatenated), str(data)), "utf-8")
    printed = run([sys.executable, script], cwd=tmp_path, path=ROOT)
    assert "task: TranslationConcatTask" in printed and "translation: w" in printed


YAML = Path(CONFIG_DIR) / "task" / "translation_concat.yaml"


def test_the_yaml_lists_every_option():
    listed = OmegaConf.to_container(OmegaConf.load(YAML), resolve=False)
    expected = {option.name: option.default for option in fields(TranslationConcatConfig)}
    assert listed == {**expected, "_name": "translation_concat"}


def test_hydra_train_finds_the_task_by_name(data, tmp_path):
    run(
        "hydra-train",
        f"--config-dir {CONFIG_DIR} model=roformer_transformer_tiny",
        f"common.user_dir={PLUGIN} task=translation_concat task.data={data}",
        "task.concat_sentences=4 task.concat_order=document",
        "criterion=cross_entropy optimizer=adam lr_scheduler=inverse_sqrt",
        "lr_scheduler.warmup_updates=10 optimization.lr=[0.01] dataset.max_tokens=600",
        "optimization.max_update=2 dataset.disable_validation=true common.cpu=true common.seed=3",
        f"checkpoint.save_dir={tmp_path}",
        cwd=tmp_path,
    )
    task = load_checkpoint_to_cpu(tmp_path / "checkpoint_last.pt")["cfg"].task
    assert (task._name, task.concat_sentences, task.seed, task.max_tokens) == (
        "translation_concat",
        4,
        3,
        600,
    )
    assert str(task.concat_order) == "document"


def test_validation_and_test_keep_one_sentence_a_line(data):
    config = parse("train", *training(data, "unused", CONCAT))
    task = tasks.setup_task(config.task)
    for split in ("valid", "test"):
        task.load_dataset(split)
        assert type(task.dataset(split)).__name__ == "LanguagePairDataset"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--concat-share 1.5", "`concat_share` must be from 0 to 1, but is 1.5"),
        ("--concat-sentences 1", "`concat_sentences` must be at least 2, but is 1; .*translation"),
        ("--load-alignments", "`load_alignments`=True cannot be used with .*leave it out"),
        ("--num-batch-buckets 3", "`num_batch_buckets`=3 cannot be used with"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options, message, data):
    config = parse("train", *training(data, "unused", CONCAT, options))
    with pytest.raises(ValueError, match=message):
        tasks.setup_task(config.task)
