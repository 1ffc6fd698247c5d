"""From archives to a score, for both segmenters, and how the run goes on after a failure."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
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
    assert "the test set has 32 lines; newstest2014 has 3003" in printed


def check_nothing_is_done_again(work, printed):
    assert printed.count("done before") == printed.count("== ") > 40
    newest = max(file.stat().st_mtime_ns for file in (work / "data").iterdir())
    assert newest <= (work / "done" / "binarise").stat().st_mtime_ns


def check_translation(lines):
    """One line for each of the test set, blank where the source is, without pieces and entities."""
    assert len(lines) == 32 and lines[30] == "" and all(lines[:30])
    assert not any("@@" in line or "\u2581" in line or "&apos;" in line for line in lines)


def test_a_stopped_run_goes_on_where_it_stopped(environment, archives, run, tmp_path):
    stem = "training/europarl-v7.de-en"
    members = {f"{stem}.en": b"good\ngood\nb\xe4d\ngood again\n", f"{stem}.de": "a\nb\nc\nd\n"}
    folder = spoil(archives, tmp_path, "training-parallel-europarl-v7.tgz", members)
    work = tmp_path / "w"
    variables = {"WORK": work, "WMT_SOURCE": folder, "SIZE": SIZE, "WORKERS": 1}
    printed = run("prepare.sh", code=1, **variables)
    assert "europarl-v7.de-en.en: line 3, byte 2: 0xe4 is not UTF-8" in printed
    assert "stopped at 'normalise europarl-v7.de-en.en'" in printed
    assert not list((work / "normal").iterdir())

    (work / "raw" / f"{stem}.en").write_bytes(b"good\ngood\nnow good\ngood again\n")
    printed = kill_at("learn", environment(**variables))
    assert "== unpack test: done before" in printed
    assert "stopped at 'learn'" in printed and "== segment" not in printed
    assert not (work / "bpe.model").exists()

    printed = run("prepare.sh", **variables)
    assert "== clean: done before" in printed and "== learn\n" in printed
    assert (work / "data" / "dict.en.txt").exists()


def kill_at(step, environment):
    """Run prepare.sh, kill the command of a step, and return what was printed."""
    command = ["bash", SCRIPTS / "prepare.sh"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as script:
        printed = ""
        for line in script.stdout:
            printed += line
            if line == f"== {step}\n":
                os.kill(child(script.pid, step), signal.SIGKILL)
    assert script.returncode != 0
    return printed


def child(pid, word):
    """The process, of those that a shell waits for, that has a word in its command line."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if word in Path(f"/proc/{number}/cmdline").read_text().split("\0"):
                    return int(number)
    raise TimeoutError


def spoil(archives, tmp_path, name, members):
    """A copy of the mirror with one archive replaced."""
    folder = tmp_path / "mirror"
    shutil.copytree(archives[0], folder)
    mirror.archive(folder / name, members)
    return folder


EUROPARL = "training/europarl-v7.de-en"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (mirror.corpus(EUROPARL, [], last_newline=False), "ERROR  1 x empty corpus"),
        ({f"{EUROPARL}.en": "a\n"}, "europarl-v7.tgz is damaged or another archive"),
        (
            {f"{EUROPARL}.en": "one\ntwo\n", f"{EUROPARL}.de": "eins\n"},
            "ERROR  1 x unequal line counts, 2 and 1",
        ),
        (
            mirror.corpus(EUROPARL, [pair[::-1] for pair in mirror.pairs(150, 3)]),
            "not en but de by its frequent words",
        ),
    ],
    ids=["empty", "no member", "unequal", "languages"],
)
def test_a_wrong_corpus_stops_with_the_reason(members, message, archives, run, tmp_path):
    folder = spoil(archives, tmp_path, "training-parallel-europarl-v7.tgz", members)
    printed = run("prepare.sh", code=1, WORK=tmp_path / "w", WMT_SOURCE=folder, WORKERS=1)
    assert message in printed and "stopped at '" in printed


def test_a_test_set_of_another_language_is_refused(archives, run, tmp_path):
    stem = "test-full/newstest2014-deen"
    members = {
        f"{stem}-src.en.sgm": mirror.sgm("src", "fr", ["un"]),
        f"{stem}-ref.de.sgm": mirror.sgm("ref", "de", ["eins"]),
    }
    folder = spoil(archives, tmp_path, "test-full.tgz", members)
    printed = run("prepare.sh", code=1, WORK=tmp_path / "w", WMT_SOURCE=folder)
    assert "`--language` is en, but" in printed and "says srclang='fr'" in printed


def test_a_missing_archive_is_named(archives, run, tmp_path):
    folder = tmp_path / "mirror"
    shutil.copytree(archives[0], folder)
    (folder / "dev.tgz").unlink()
    printed = run("prepare.sh", code=1, WORK=tmp_path / "w", WMT_SOURCE=folder.as_uri())
    assert "mirror/dev.tgz" in printed and "stopped at 'fetch dev.tgz'" in printed


def test_a_changed_archive_is_refused(archives, run, tmp_path):
    (tmp_path / "w" / "archives").mkdir(parents=True)
    lock = tmp_path / "w" / "archives" / "sha256.txt"
    lock.write_text(f"{'0' * 64}  training-parallel-europarl-v7.tgz\n")
    printed = run("prepare.sh", code=1, WORK=tmp_path / "w", WMT_SOURCE=archives[0])
    assert f"but {lock} says 0000" in printed


def test_half_an_archive_stops(archives, run, tmp_path):
    folder = tmp_path / "mirror"
    shutil.copytree(archives[0], folder)
    file = folder / "dev.tgz"
    file.write_bytes(file.read_bytes()[:-100])
    printed = run("prepare.sh", code=1, WORK=tmp_path / "w", WMT_SOURCE=folder)
    assert "stopped at 'unpack valid'" in printed


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SEGMENTER", "bpe", "SEGMENTER must be subword-nmt or sentencepiece, but is bpe"),
        ("SIZE", "many", "SIZE must be a whole number, but is many"),
        ("DEDUP", "1", "DEDUP must be yes or no, but is 1"),
    ],
)
def test_wrong_settings_are_named(name, value, message, archives, run, tmp_path):
    work = tmp_path / "w"
    assert message in run("prepare.sh", code=1, WORK=work, WMT_SOURCE=archives[0], **{name: value})
    assert not work.exists()


@pytest.mark.parametrize("script", ["train.sh", "translate.sh"])
def test_without_data_the_next_step_is_named(script, run, tmp_path):
    assert "run prepare.sh first" in run(script, code=1, WORK=tmp_path / "w", GPUS=0)
