"""One run of benchmarks.positions: train a model, translate with it, and keep the figures."""

import json
import re
import shlex
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairseq_rope.text.lines import read_lines

from .pipeline import run_script
from .position_data import SENTENCES, Sets, joined_sets, length_bins
from .position_rows import ROWS, SIZES, TRAININGS, Row
from .training_log import read_training
from .translation_quality import quality

CHECKPOINTS = 20
"""Saved and validated during a training; the last 5 are averaged."""

TRAINING = """
    --max-update {updates} --seed {seed} --lr 3e-3 --warmup-updates {warmup}
    --save-interval-updates {interval} --save-interval 1000
    --validate-interval-updates {interval} --validate-interval 1000
    --log-format json --log-interval {log}"""


@dataclass(frozen=True)
class Bench:
    """What all runs have in common: the folder, how long a training is, and its vocabulary."""

    work: Path
    updates: int
    batch_tokens: int
    merges: int

    @cached_property
    def sets(self) -> Sets:
        return joined_sets(self.work)

    def training(self, seed: int) -> list[str]:
        interval = max(1, self.updates // CHECKPOINTS)
        options = TRAINING.format(
            updates=self.updates,
            seed=seed,
            warmup=max(1, self.updates // 4),
            interval=interval,
            log=max(1, interval // 2),
        )
        return shlex.split(f"{SIZES} {options}")


@dataclass(frozen=True)
class Run:
    """A row with one seed; `short`: trained on the shorter sentences only."""

    row: str
    seed: int
    short: bool = False

    @property
    def model(self) -> "Run":
        """The run that trains the model of this one."""
        return Run(self.parts.training, self.seed, self.short)

    @property
    def parts(self) -> Row:
        return ROWS[self.row]

    def __str__(self) -> str:
        return f"{self.row}, seed {self.seed}{', short sentences' * self.short}"

    def folder(self, bench: Bench) -> Path:
        name = re.sub(r"\W+", "-", self.row)
        kind = "short" if self.short else "all"
        return bench.work / "runs" / f"{name}-{kind}-{bench.updates}-{self.seed}"


def train(run: Run, bench: Bench) -> None:
    """Train and average a model unless that is done; goes on from the last checkpoint."""
    folder = run.folder(bench)
    if (folder / "averaged.pt").exists():
        return
    work = bench.work / "short" if run.short else bench.work
    at = {"SAVE_DIR": str(folder), "BATCH_TOKENS": str(bench.batch_tokens)}
    options = [*shlex.split(TRAININGS[run.row]), *bench.training(run.seed)]
    run_script("train.sh", folder / "train.log", work, *options, **at)
    run_script("average.sh", folder / "average.log", work, **at)
    for checkpoint in folder.glob("checkpoint*.pt"):  # three times a model each
        checkpoint.unlink()


def evaluate(run: Run, bench: Bench) -> dict[str, Any]:
    """The figures of a run whose model is trained; kept in its folder.

    All sentences a line for a model of all data, single sentences by length for one of short data.
    """
    result = run.folder(bench) / "result.json"
    if not result.exists():
        figures = _figures(run, bench, _translate(run, bench))
        result.write_text(json.dumps(figures, indent=1), "utf-8")
    return json.loads(result.read_text("utf-8"))


def _translate(run: Run, bench: Bench) -> list[str]:
    folder = run.folder(bench)
    source = bench.work / f"test-{'single' if run.short else 'all'}.en"
    output = folder / "test.de"
    overrides = run.parts.overrides
    options = ["--model-overrides", repr(overrides)] if overrides else []
    checkpoint = str(run.model.folder(bench) / "averaged.pt")
    run_script(
        *("translate.sh", folder / "translate.log", bench.work, str(source), str(output), *options),
        CHECKPOINT=checkpoint,
    )
    return list(read_lines(output))


def _figures(run: Run, bench: Bench, translations: list[str]) -> dict[str, Any]:
    training = read_training(run.model.folder(bench) / "train.log")
    figures: dict[str, Any] = training._asdict()
    references = bench.sets.references
    if run.short:
        figures["bins"] = [
            quality([translations[i] for i in numbers], [references[i] for i in numbers])._asdict()
            for numbers in length_bins(bench.work)
        ]
    else:
        parts = zip(SENTENCES, bench.sets.parts(translations), bench.sets.parts(references))
        figures["sets"] = {n: quality(lines, expected)._asdict() for n, lines, expected in parts}
    return figures
