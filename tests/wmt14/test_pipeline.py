"""From archives to a score, for both segmenters."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fairseq_rope.text.lines import count_lines, read_lines

from . import mirror
from .conftest import ROOT, SCRIPTS

SIZE = 250
OPTIONS = """--arch roformer_transformer_tiny --encoder-layers 1 --decoder-layers 1
    --encoder-embed-dim 64 --decoder-embed-dim 64 --encoder-ffn-embed-dim 128
    --decoder-ffn-embed-dim 128 --max-update 20 --lr 5e-3 --warmup-updates 10
    --save-interval-updates 10 --validate-interval-updates 10 --num-workers 0"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("segmenter", ["subword-nmt", "sentencepiece"])
def test_from_archives_to_a_score(segmenter, run, archives, tmp_path):
    work = tmp_path / "work"
    prepare(run, work, segmenter, *archives)
    train(run, work)
    scored = run("score.sh", WORK=work)
    for name in ("sacreBLEU", "chrF2", "TER", "tokenised BLEU", "tokenised BLEU, compounds split"):
        assert re.search(rf"  {name} = \d+\.\d\d  \[", scored)
    if segmenter == "sentencepiece":
        check_yaml_file(work, tmp_path)


def prepare(run, work, segmenter, archives, test):
    variables = {
        "WORK": work,
        "WMT_SOURCE": archives,
        "SEGMENTER": segmenter,
        "SIZE": SIZE,
        "THRESHOLD": 2,
        "SPLIT_HYPHENS": "yes",
        "DEDUP": "yes",
        "WORKERS": 1,
    }
    printed = run("prepare.sh", **variables)
    check_line_counts(work, len(test))
    check_table(work, printed)
    check_nothing_is_done_again(work, run("prepare.sh", **variables))
    refused = run("prepare.sh", code=1, **{**variables, "SIZE": SIZE + 1})
    assert "was begun with" in refused and "choose another WORK" in refused


def train(run, work):
    variables = {"WORK": work, "GPUS": 0, "BATCH_TOKENS": 1500, "GPU_TOKENS": 800}
    printed = run("train.sh", *OPTIONS.split(), **variables)
    assert "1 processes x 750 tokens x update-freq 2 = 1500 tokens an update" in printed
    resumed = run("train.sh", *OPTIONS.split(), "--max-update", 21, **variables)
    assert re.search(r"Loaded checkpoint \S+checkpoint_last.pt .* @ 20 updates", resumed)
    assert "average of" in run("average.sh", WORK=work, LAST=2)

    assert "32 lines, 0 skipped" in run("translate.sh", WORK=work)
    check_translation(list(read_lines(work / "base" / "test.de")))
    text, output = work / "any.en", work / "any.de"
    text.write_text("The dog sees a red car.\n\n" + "the dog " * 1200 + "\nThe cat.\n")
    printed = run("translate.sh", text, output, WORK=work)
    assert "4 lines, 1 skipped: lines 3, blank in the output" in printed
    assert [bool(line) for line in read_lines(output)] == [True, False, False, True]


def check_yaml_file(work, folder):
    """fairseq-hydra-train trains by the YAML file, with the settings of train.sh."""
    overrides = {
        "common.user_dir": ROOT / "fairseq_rope",
        "task.data": work / "data",
        "common.bf16": "false",
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "optimization.max_update": 1,
        "optimization.update_freq": "[1]",
        "dataset.max_tokens": 200,
        "hydra.run.dir": folder / "hydra",
    }
    command = [Path(sys.executable).parent / "fairseq-hydra-train"]
    command += ["--config-dir", SCRIPTS / "config", "--config-name", "roformer_base"]
    command += [f"{name}={value}" for name, value in overrides.items()]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    theirs, ours = (
        torch.load(path / "checkpoint_last.pt", weights_only=True)["cfg"]
        for path in (work / "base", folder / "hydra" / "checkpoints")
    )
    chosen_here = {"lr", "warmup_updates"}
    for part in ("criterion", "optimizer", "lr_scheduler"):
        for name in theirs[part].keys() - chosen_here:
            assert ours[part][name] == theirs[part][name], name
    for part, name in (("model", "share_all_embeddings"), ("common", "seed")):
        assert ours[part][name] == theirs[part][name]
    assert ours["optimization"]["lr"] == [5e-4] and ours["lr_scheduler"]["warmup_updates"] == 4000


def check_line_counts(work, test_lines):
    """Both sides have equally many lines at every step, and fairseq reads as many."""
    folders = ["text", "normal", "tokens", "pieces"]
    files = [file for folder in folders for file in (work / folder).glob("*.en")]
    files += [work / "clean.en", work / "dedup.en"]
    assert len(files) == 2 + 5 + 3 + 3 + 2
    for file in files:
        assert count_lines(file) == count_lines(file.with_suffix(".de")), file
    assert count_lines(work / "tokens" / "train.en") == 250 + 200 + 150 + 2 * len(mirror.ODD)
    assert count_lines(work / "pieces" / "test.en") == test_lines
    log = (work / "data" / "preprocess.log").read_text("utf-8")
    found = re.findall(r"\[(en|de)\] \S+/pieces/(\w+)\.\w+: (\d+) sents", log)
    assert len(found) == 6
    for language, part, sentences in found:
        assert count_lines(work / "pieces" / f"{part}.{language}") == int(sentences)


def check_table(work, printed):
    """The table accounts for every line."""
    records = [json.loads(line) for line in read_lines(work / "report")]
    steps = {record["step"]: record for record in records}
    for step in steps.values():
        assert step["read"] == step["written"] + sum(step["dropped"].values())
        assert step["step"] in printed
    dropped = steps["train clean"]["dropped"]
    # mirror.ODD stands in two corpora.
    assert dropped["empty"] == 2 * 4 and dropped["longer than 250 words"] == 2 * 1
    assert steps["train dedup"]["dropped"]["duplicate"] >= len(mirror.ODD) - 8
    assert "pieces in the joined dictionary: " in printed
    if (work / "vocabulary.en").exists():
        for language in ("en", "de"):
            assert (
                f"vocabulary.{language}:{count_lines(work / f'vocabulary.{language}')}" in printed
            )
    assert "the test set has 32 lines; newstest2014 has 3003" in printed


def check_nothing_is_done_again(work, printed):
    assert printed.count("done before") == printed.count("== ") > 40
    newest = max(file.stat().st_mtime_ns for file in (work / "data").iterdir())
    assert newest <= (work / "done" / "binarise").stat().st_mtime_ns


def check_translation(lines):
    """One line for each of the test set, blank where the source is, without pieces and entities."""
    assert len(lines) == 32 and lines[30] == "" and all(lines[:30])
    assert not any("@@" in line or "\u2581" in line or "&apos;" in line for line in lines)
