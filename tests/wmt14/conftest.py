"""The scripts of examples/wmt14_en_de, run as a user runs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from . import mirror

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "examples" / "wmt14_en_de"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """environment(**variables): PATH with this Python's commands and `fairseq-rope`."""
    commands = tmp_path_factory.mktemp("bin")
    command = commands / "fairseq-rope"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fairseq_rope.cli "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])

    def make(**variables):
        settings = {name: str(value) for name, value in variables.items()}
        return {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PATH": path, **settings}

    return make


@pytest.fixture(scope="module")
def run(environment):
    """run("prepare.sh", *arguments, code=0, **variables): what the script printed."""

    def script(name, *arguments, code=0, **variables):
        result = subprocess.run(
            ["bash", SCRIPTS / name, *map(str, arguments)],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=400,
        )
        printed = result.stdout.decode()
        assert result.returncode == code, printed
        assert "Traceback" not in printed
        return printed

    return script


@pytest.fixture(scope="session")
def archives(tmp_path_factory):
    """The mirror, and the pairs of its test set."""
    folder = tmp_path_factory.mktemp("wmt") / "mirror"
    return folder, mirror.build(folder)
