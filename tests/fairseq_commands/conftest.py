"""One corpus, one data folder and one trained checkpoint, shared by all workers of pytest-xdist."""

import fcntl
import os
import random
import sys
from types import SimpleNamespace

import pytest
import torch

from .commands import PLUGIN, RECORD, run, training

SIZES = {"train": 600, "valid": 24, "test": 24}
# Far from the defaults, so that a setting lost between training and generation shows.
SETTINGS = "--rope-base 50 --rope-layout half --rope-fraction 0.5 --rope-cross-attention"
SCHEDULE = "--max-epoch 2 --save-interval-updates 4 --validate-interval-updates 4"

torch.set_num_threads(1)  # as the processes started here: then their results are equal to the bit


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """share(name, make): the folder `name`, filled by the first worker with make(folder)."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def share(name, make):
        folder, done = root / name, root / f"{name}.done"
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return share


@pytest.fixture(scope="session")
def corpus(shared_folder):
    """Twenty words; the target is the source read backwards. One test word was never seen."""

    def make(folder):
        draw = random.Random(1)
        for split, size in SIZES.items():
            lines = [
                [f"w{draw.randrange(20)}" for _ in range(draw.randint(1, 9))] for _ in range(size)
            ]
            if split == "test":
                lines[0] = ["w1", "unseen", "w2"]
            for language, step in (("src", 1), ("tgt", -1)):
                text = "".join(" ".join(line[::step]) + "\n" for line in lines)
                (folder / f"{split}.{language}").write_text(text, "utf-8")

    return shared_folder("corpus", make)


@pytest.fixture(scope="session")
def data(corpus, shared_folder):
    """The corpus after fairseq-preprocess."""

    def make(folder):
        splits = [word for split in SIZES for word in (f"--{split}pref", corpus / split)]
        run(
            "preprocess",
            "-s",
            "src",
            "-t",
            "tgt",
            *splits,
            "--joined-dictionary",
            "--destdir",
            folder,
        )

    return shared_folder("data", make)


@pytest.fixture(scope="session")
def trained(data, shared_folder):
    """A model trained by fairseq-train in a process that ended.

    Two epochs; `halves` are the checkpoints after each half of an epoch, each validated. `log` is
    what the process printed, `record` what record.py kept, `settings` the options of the model.
    """

    def make(folder):
        arguments = training(data, folder, SETTINGS, SCHEDULE, "--user-dir", PLUGIN)
        command = [sys.executable, RECORD, folder / "record.pt", "fairseq_cli.train"]
        (folder / "log").write_text(run(command, *arguments), "utf-8")

    folder = shared_folder("trained", make)
    return SimpleNamespace(
        folder=folder,
        last=folder / "checkpoint_last.pt",
        halves=[folder / f"checkpoint{name}.pt" for name in ("_1_4", "1", "_2_12", "2")],
        settings=SETTINGS,
        log=(folder / "log").read_text("utf-8"),
        record=folder / "record.pt",
    )
