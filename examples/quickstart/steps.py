"""Run a chain of commands, each once: what is done is not done again, what fails is cleared away.

A step keeps its results in a folder of its own. It is known by its recipe: its commands, the
contents of the user's files that they read, and the recipe of the step before it. So any change
redoes the steps that depend on it and no others.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from signal import Signals

from examples.quickstart.progress import duration, show_line

BEGUN, DONE = ".begun", ".done"
"""Files in a step's folder that hold its recipe."""


class CommandFailed(Exception):
    """A command ended with an error."""


@dataclass(frozen=True)
class Step:
    """Commands that fill the folder `name`."""

    name: str
    commands: Sequence[str]
    watch: Callable[[str], None] = lambda line: None
    """Is given every line that the commands print."""
    inputs: Sequence[Path] = ()
    """Files that are not made by an earlier step."""
    resumes: bool = False
    """The command itself goes on where it was interrupted, so its folder is kept."""


def run_steps(steps: Sequence[Step], work: Path) -> None:
    """Run, in order, the steps that are not done. Raises CommandFailed."""
    recipe = ""
    for number, step in enumerate(steps, 1):
        recipe = _recipe(recipe, step)
        print(f"\n[{number}/{len(steps)}] {step.name}", flush=True)
        if _read(work / step.name / DONE) == recipe:
            print(f"done before; its results are in {work / step.name}")
            continue
        start = time.monotonic()
        _run_step(step, work, recipe)
        print(f"done in {duration(time.monotonic() - start)}", flush=True)


def _run_step(step: Step, work: Path, recipe: str) -> None:
    folder, log = work / step.name, work / f"{step.name}.log"
    if not (step.resumes and _read(folder / BEGUN) == recipe):
        shutil.rmtree(folder, ignore_errors=True)
        log.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / BEGUN).write_text(recipe)
    try:
        for command in step.commands:
            print(command, flush=True)
            _run_command(shlex.split(command.replace("\\\n", " ")), log, step.watch)
    except BaseException:
        if not step.resumes:
            shutil.rmtree(folder)
        raise
    (folder / BEGUN).rename(folder / DONE)


def _run_command(words: Sequence[str], log: Path, watch: Callable[[str], None]) -> None:
    tail: deque[str] = deque(maxlen=10)
    with (
        log.open("a", encoding="utf-8") as file,
        subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        try:
            for line in process.stdout:
                file.write(line)
                tail.append(line)
                watch(line)
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        already_shown = watch is show_line
        said = "" if already_shown else f"; its last words were\n{''.join(tail)}"
        how = _how_it_ended(process.returncode)
        raise CommandFailed(f"`{words[0]}` {how}, its whole output is in {log}{said}")


def _how_it_ended(code: int) -> str:
    if code < 0:
        return f"was ended by {Signals(-code).name}"
    return f"failed with exit code {code}"


def _recipe(earlier: str, step: Step) -> str:
    digest = hashlib.sha256("\n".join([earlier, *step.commands]).encode())
    for path in step.inputs:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""
