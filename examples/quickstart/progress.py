"""Show how far a command of fairseq has come and how long it will still take."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import TextIO

TRAINED = re.compile(r"\| train_inner \| (\{.*\})")
VALIDATED = re.compile(r"\| valid \| (\{.*\})")
GENERATED = re.compile(r":\s+(\d+) / (\d+) ")

SECONDS_BETWEEN_LINES = 10.0


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def show_line(line: str) -> None:
    """Show a command's own words."""
    print(line, end="", flush=True)


class Progress:
    """A line that rewrites itself on a terminal; in a file, a new line every ten seconds."""

    def __init__(self, unit: str, stream: TextIO | None = None) -> None:
        self.unit = unit
        self.stream = stream or sys.stdout
        self.shown = float("-inf")
        # A resumed run does not begin at 0, so speed is measured from the first count seen.
        self.first: tuple[int, float] | None = None

    def show(self, count: int, total: int, *notes: str) -> None:
        """Say that `count` of `total` are done, with the time left."""
        now = time.monotonic()
        if self.first is None:
            self.first = (count, now)
        terminal, finished = self.stream.isatty(), count >= total
        if terminal or finished or now - self.shown >= SECONDS_BETWEEN_LINES:
            self.shown = now
            parts = [f"{count:,} of {total:,} {self.unit}", *notes, *self._left(count, total, now)]
            start = "\r\033[K" if terminal else ""
            end = "" if terminal and not finished else "\n"
            print(start + ", ".join(parts), end=end, file=self.stream, flush=True)

    def _left(self, count: int, total: int, now: float) -> list[str]:
        first_count, first_time = self.first or (count, now)
        if not first_count < count < total:
            return []
        seconds = (now - first_time) / (count - first_count) * (total - count)
        return [f"{duration(seconds)} left"]


class TrainingProgress(Progress):
    """Reads the output of `fairseq-train --log-format json`."""

    def __init__(self, updates: int) -> None:
        super().__init__("updates")
        self.updates = updates
        self.perplexity = "not yet validated"

    def __call__(self, line: str) -> None:
        if match := VALIDATED.search(line):
            self.perplexity = f"perplexity {json.loads(match[1])['valid_ppl']}"
        elif match := TRAINED.search(line):
            stats = json.loads(match[1])
            speed = f"{float(stats['wps']):,.0f} tokens/s"
            self.show(int(stats["num_updates"]), self.updates, speed, self.perplexity)


class GenerationProgress(Progress):
    """Reads the output of `fairseq-generate --log-format simple`."""

    def __init__(self) -> None:
        super().__init__("batches")

    def __call__(self, line: str) -> None:
        if match := GENERATED.search(line):
            self.show(int(match[1]), int(match[2]))
