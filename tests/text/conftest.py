"""The command line, a toy corpus, and text with everything that breaks lines elsewhere."""

import gzip
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"

ODD_LINES = [
    "plain words",
    "a\u2028line separator",
    "next\x85line",
    "carriage\rreturn",
    "carriage return at the end\r",
    "nul\0inside",
    "no-break\xa0space",
    "\ufeffbyte order mark",
    "",
    "   ",
    "form\x0cfeed and vertical\x0btab",
    "file\x1cgroup\x1drecord\x1eseparators",
    "ideographic\u3000space",
    "<s> <pad> </s> <unk>",
    "a@@ b@@ @@ x@@y @ @@@ end@@",
    "low \u2581block\u2581",
    "&apos; &amp; it's",
    "zero\u200bwidth soft\xadhyphen",
    "e\u0301 decomposed \U0001d11e astral",
    "no newline at the end",
]


@pytest.fixture
def odd_file(tmp_path):
    """A file of ODD_LINES whose last line has no LF."""
    path = tmp_path / "odd.txt"
    path.write_bytes("\n".join(ODD_LINES).encode())
    return path


@pytest.fixture(scope="session")
def toy_lines():
    """400 sentences of made-up words with a Zipfian distribution."""
    rng = random.Random(1)
    syllables = [c + v for c in "bdfgklmnprst" for v in "aeiouäö"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(300)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    return [
        " ".join(rng.choices(words, weights, k=rng.randint(3, 15))) + rng.choice([".", "?", ""])
        for _ in range(400)
    ]


@pytest.fixture
def toy_file(tmp_path, toy_lines):
    path = tmp_path / "toy.txt"
    path.write_text("\n".join(toy_lines) + "\n", "utf-8")
    return path


@pytest.fixture
def cli():
    """cli(*arguments, code=0, **options): run `fairseq-rope` in a process of its own.

    The result holds stdout and stderr as bytes. A traceback is a failure whatever the exit code.
    """

    def run(*arguments, code=0, **options):
        command = [sys.executable, "-m", "fairseq_rope.cli", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        result = subprocess.run(command, env=environment, **pipes)
        assert b"Traceback" not in result.stderr, result.stderr.decode()
        assert result.returncode == code, result.stderr.decode()
        return result

    return run


@pytest.fixture
def shared_lines():
    """shared_lines("newstest/newstest2014.de"): lines of ../shared/data, or the test is skipped."""

    def read(name):
        path = SHARED / f"{name}.gz"
        if not path.exists():
            pytest.skip(f"{path} is absent")
        return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]

    return read
