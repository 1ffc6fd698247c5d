"""What the steps did to a corpus: lines in and out, why lines were dropped, how fast."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from .lines import read_lines

Item = TypeVar("Item")

PROGRESS_INTERVAL = 10.0
"""Seconds between two progress lines."""


@dataclass
class Report:
    """The account of one step.

    ``words_read`` and ``words_written`` count what stands between single spaces; for a segmenter
    their ratio is the pieces per word. ``dropped`` counts lines by reason.
    """

    step: str
    read: int = 0
    written: int = 0
    words_read: int = 0
    words_written: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.most_common())
        return f"{self.step}: {self.read:,} lines in, {self.written:,} out" + (
            f" (dropped: {reasons})" if reasons else ""
        )

    @property
    def growth(self) -> float:
        """Words written for every word read; 0 where no words were counted."""
        return self.words_written / self.words_read if self.words_read else 0.0

    def append_to(self, path: str | Path) -> None:
        """Add the report to a file of one JSON object a line, for ``read_reports``."""
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(vars(self), ensure_ascii=False) + "\n")


def read_reports(path: str | Path) -> list[Report]:
    """Read what ``Report.append_to`` wrote, the last report of each step, in order of the steps.

    Raises ValueError, with the line, for a file of something else.
    """
    reports: dict[str, Report] = {}
    for number, line in enumerate(read_lines(path), 1):
        try:
            report = Report(**json.loads(line))
            report.dropped = Counter(report.dropped)
            str(report)
        except (ValueError, TypeError, AttributeError):
            raise ValueError(
                f"{path}: line {number} is no report of a step, but {line[:60]!r}; "
                "name a file that steps wrote with --report"
            ) from None
        reports[report.step] = report
    if not reports:
        raise ValueError(f"{path} holds no reports; name a file that steps wrote with --report")
    return list(reports.values())


def format_reports(reports: Iterable[Report]) -> str:
    """Return a table: one step a row."""
    rows = [("step", "lines in", "lines out", "words out/in", "dropped")]
    for report in reports:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.most_common())
        growth = f"{report.growth:.2f}" if report.growth else ""
        rows.append((report.step, f"{report.read:,}", f"{report.written:,}", growth, reasons))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join(
        f"{step:<{widths[0]}}  {read:>{widths[1]}}  {written:>{widths[2]}}  {growth:>{widths[3]}}"
        f"  {reasons}".rstrip()
        for step, read, written, growth, reasons in rows
    )


def with_progress(items: Iterable[Item], step: str, unit: str = "lines") -> Iterator[Item]:
    """Yield the items and tell standard error from time to time how many have passed."""
    start = told = time.monotonic()
    for number, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if now - told > PROGRESS_INTERVAL:
            told = now
            speed = f"{number / (now - start):,.0f} a second"
            print(f"{step}: {number:,} {unit}, {speed}", file=sys.stderr)
