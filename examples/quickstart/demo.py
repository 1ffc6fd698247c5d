"""From text to a scored translation model: what ``make demo`` runs.

Environment variables: ``TARGET_LANG`` (de) is the language to translate into; ``SRC`` and ``TGT``
are two text files of one's own, the lines of one translating those of the other.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from examples.quickstart.commands import INTERACTIVE, Text, chain
from examples.quickstart.samples import side_by_side
from examples.quickstart.steps import CommandFailed, run_steps
from fairseq_rope.scoring import read_hypotheses
from fairseq_rope.text.lines import read_lines

MAX_THREADS = 4
"""More do not make so small a model faster."""


def main() -> None:
    """Run the demo. A user's mistake or a failed command ends it with a message."""
    # Unlike the default, leaves through the clean-up of the running step.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        text = Text.from_environment(os.environ)
        set_environment()
        run_steps(chain(text), text.folder)
        show_results(text)
    except (ValueError, OSError, CommandFailed) as error:
        sys.exit(f"make demo: {error}")
    except KeyboardInterrupt:
        sys.exit("\nmake demo: interrupted; run it again to go on from here")


def set_environment() -> None:
    """Let the commands be found, and use the machine's cores and memory well."""
    threads = min(MAX_THREADS, len(os.sched_getaffinity(0)))
    settings = {
        "OMP_NUM_THREADS": str(threads),
        # Threads that wait for one another sleep. By default they keep their core busy, which makes
        # training several times slower as soon as another program wants one.
        "OMP_WAIT_POLICY": "PASSIVE",
        # A small model frees and asks for the same memory many times a second. glibc would give it
        # back to the system each time; keeping it makes training a sixth faster.
        "MALLOC_MMAP_THRESHOLD_": "1000000000",
        "MALLOC_TRIM_THRESHOLD_": "2000000000",
    }
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    programs = Path(sys.executable).parent
    print("The commands of this demo run by themselves after")
    print(f"export PATH={programs}:$PATH", *(f"{name}={os.environ[name]}" for name in settings))
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    os.environ["PYTHONUNBUFFERED"] = "1"


def show_results(text: Text) -> None:
    """Print the score, sample translations, and how to translate more."""
    files = {name: f"{text.folder}/text/test.{name}" for name in (text.source, text.target)}
    columns = {name: list(read_lines(file)) for name, file in files.items()}
    columns["translation"] = read_hypotheses(f"{text.folder}/translation/generate-test.txt")
    print((text.folder / "score.log").read_text("utf-8"))
    print(side_by_side(columns))
    print(f"\nType more sentences, one a line, into\n{text.fill(INTERACTIVE)}")


if __name__ == "__main__":
    main()
