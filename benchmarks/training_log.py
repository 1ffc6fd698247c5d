"""What fairseq-train says of a training, from its log (`--log-format json`)."""

import json
import re
import statistics
from pathlib import Path
from typing import Any, NamedTuple

PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


class Training(NamedTuple):
    parameters: int
    speed: float  # target tokens a second: the median over the log's intervals
    losses: dict[int, float]  # bits a token of the development set, by update


def read_training(log: Path) -> Training:
    """Of a training that was stopped and went on, what was done twice counts once."""
    text = log.read_text("utf-8")
    found = PARAMETERS.search(text)
    if found is None:
        raise ValueError(f"{log} is no log of fairseq-train")
    speeds = [float(entry["wps"]) for entry in _entries(text, "train_inner") if "wps" in entry]
    losses = {
        int(entry["valid_num_updates"]): float(entry["valid_nll_loss"])
        for entry in _entries(text, "valid")
    }
    return Training(int(found[1].replace(",", "")), statistics.median(speeds), losses)


def _entries(text: str, tag: str) -> list[dict[str, Any]]:
    lines = (line.partition(f"| {tag} | ")[2] for line in text.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]
