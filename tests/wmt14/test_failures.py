"""A run that fails says why, leaves nothing half-done, and goes on when it is run again."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from . import mirror
from .conftest import SCRIPTS

EUROPARL = "training/europarl-v7.de-en"


def test_a_stopped_run_goes_on_where_it_stopped(environment, archives, run, tmp_path):
    members = {
        f"{EUROPARL}.en": b"good\ngood\nb\xe4d\ngood again\n",
        f"{EUROPARL}.de": "a\nb\nc\nd\n",
    }
    folder = spoil(archives, tmp_path, "training-parallel-europarl-v7.tgz", members)
    work = tmp_path / "w"
    variables = {"WORK": work, "WMT_SOURCE": folder, "SIZE": 250, "WORKERS": 1}
    printed = run("prepare.sh", code=1, **variables)
    assert "europarl-v7.de-en.en: line 3, byte 2: 0xe4 is not UTF-8" in printed
    assert "stopped at 'normalise europarl-v7.de-en.en'" in printed
    assert not list((work / "normal").iterdir())

    (work / "raw" / f"{EUROPARL}.en").write_bytes(b"good\ngood\nnow good\ngood again\n")
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
        ("SIZE", "many", "SIZE must be a whole number above 0, but is many"),
        ("WORKERS", "08", "WORKERS must be a whole number above 0, but is 08"),
        ("DEDUP", "1", "DEDUP must be yes or no, but is 1"),
    ],
)
def test_wrong_settings_are_named(name, value, message, archives, run, tmp_path):
    work = tmp_path / "w"
    assert message in run("prepare.sh", code=1, WORK=work, WMT_SOURCE=archives[0], **{name: value})
    assert not work.exists()


def test_a_size_may_change_until_it_is_used(archives, run, tmp_path):
    variables = {"WORK": tmp_path, "WMT_SOURCE": tmp_path / "nowhere"}
    settings, learned = tmp_path / "settings", tmp_path / "done" / "learn"
    assert "stopped at 'fetch" in run("prepare.sh", code=1, SIZE=999_999, **variables)
    assert "stopped at 'fetch" in run("prepare.sh", code=1, SIZE=250, THRESHOLD=2, **variables)
    assert "SIZE=250 THRESHOLD=2" in settings.read_text()
    assert "choose another WORK" in run("prepare.sh", code=1, DEDUP="yes", **variables)
    learned.touch()
    assert "choose another WORK" in run("prepare.sh", code=1, SIZE=300, THRESHOLD=2, **variables)
    assert "SIZE=250 THRESHOLD=2" in settings.read_text()


def test_a_failure_to_write_is_not_blamed_on_the_archive(archives, run, tmp_path):
    work = tmp_path / "w"
    (work / "raw").mkdir(parents=True)
    (work / "raw" / "training").write_text("in the way of a folder of that name")
    printed = run("prepare.sh", code=1, WORK=work, WMT_SOURCE=archives[0])
    assert "europarl-v7.tgz is whole; tar says above what failed" in printed
    assert "stopped at 'unpack europarl'" in printed and "damaged" not in printed


@pytest.mark.parametrize("script", ["train.sh", "translate.sh"])
def test_without_data_the_next_step_is_named(script, run, tmp_path):
    assert "run prepare.sh first" in run(script, code=1, WORK=tmp_path / "w", GPUS=0)
