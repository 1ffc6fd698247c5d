"""The demo's progress lines, from lines as fairseq prints them."""

import io
import re

import pytest

from examples.quickstart.progress import GenerationProgress, Progress, TrainingProgress, duration

TRAINED = (
    '2026-12-01 17:50:15 | INFO | train_inner | {{"epoch": 1, "update": 0.435, "loss": "11.442", '
    '"wps": "1370.4", "num_updates": "{}", "lr": "0.000375"}}\n'
)
VALIDATED = '2026-12-01 17:50:15 | INFO | valid | {"epoch": 1, "valid_ppl": "23.45"}\n'
GENERATED = "2026-12-01 17:50:15 | INFO | fairseq_cli.generate | :     {} / 21 wps=1523\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (61, "1 min 1 s"), (3600, "60 min 0 s")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_training_shows_updates_speed_perplexity_and_time_left(capsys):
    progress = TrainingProgress(100)
    progress(TRAINED.format(50))
    progress(VALIDATED)
    progress.shown -= 60
    progress.first = (50, progress.first[1] - 25)
    progress(TRAINED.format(75))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "50 of 100 updates, 1,370 tokens/s, not yet validated"
    assert lines[1] == "75 of 100 updates, 1,370 tokens/s, perplexity 23.45, 25 s left"


def test_generation_shows_batches(capsys):
    progress = GenerationProgress()
    progress(GENERATED.format(2))
    progress(GENERATED.format(21))
    assert capsys.readouterr().out == "2 of 21 batches\n21 of 21 batches\n"


def test_other_lines_are_passed_over(capsys):
    TrainingProgress(100)("| INFO | train | {not json}\n")
    GenerationProgress()("loading model\n")
    assert capsys.readouterr().out == ""


def test_a_file_gets_a_line_every_ten_seconds():
    stream = io.StringIO()
    progress = Progress("steps", stream)
    for count in range(1, 101):
        progress.show(count, 100)
    assert stream.getvalue() == "1 of 100 steps\n100 of 100 steps\n"


def test_a_terminal_gets_one_line_that_rewrites_itself():
    stream = Terminal()
    progress = Progress("steps", stream)
    for count in (1, 2, 3):
        progress.show(count, 3)
    assert stream.getvalue().count("\n") == 1
    assert re.split(r"\r\033\[K", stream.getvalue())[-1] == "3 of 3 steps\n"
