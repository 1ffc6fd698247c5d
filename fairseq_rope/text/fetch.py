"""Archives from the web or a folder, whole and always the same."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.error import URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from .lines import replacing
from .report import with_progress

MEBIBYTE = 1 << 20

NOTHING_LEFT = 416
"""The HTTP status for a range that begins at the end of the file."""


def fetch(source: str, target: Path, lock: Path) -> None:
    """Make ``target`` a copy of ``source`` (an http(s) or file URL, or a path) and check its hash.

    An interrupted download goes on where it stopped. ``lock`` holds lines as sha256sum writes
    them: the first fetch of a file adds its line, every later one must agree with it. Raises
    ValueError for a wrong hash or an incomplete download, OSError if the source is not there.
    """
    scheme = urlsplit(source).scheme
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if scheme in ("http", "https"):
            _download(source, target)
        else:
            path = unquote(urlsplit(source).path) if scheme == "file" else source
            with replacing(target) as (partial,):
                shutil.copyfile(path, partial)
    _check_hash(target, lock)


def _download(url: str, target: Path) -> None:
    partial = target.with_name(f"{target.name}.part")
    have = partial.stat().st_size if partial.exists() else 0
    try:
        response = urlopen(Request(url, headers={"Range": f"bytes={have}-"}), timeout=60)
    except URLError as error:
        if getattr(error, "code", None) != NOTHING_LEFT:
            raise OSError(
                f"{url}: {error}; run again, or get {target.name} elsewhere and name its folder"
            ) from None
        partial.rename(target)
        return
    with response:
        resumed = response.status == 206
        size = int(response.headers["Content-Length"]) + (have if resumed else 0)
        with open(partial, "ab" if resumed else "wb") as output:
            chunks = iter(lambda: response.read(MEBIBYTE), b"")
            output.writelines(with_progress(chunks, f"fetch {target.name}", "MiB"))
    have = partial.stat().st_size
    if have != size:
        raise ValueError(
            f"{url}: the connection ended after {have:,} of {size:,} bytes; "
            "run again to fetch the rest"
        )
    partial.rename(target)


def _check_hash(file: Path, lock: Path) -> None:
    entries = (line.split("  ", 1) for line in _read(lock).splitlines())
    known = {name: digest for digest, name in entries}
    found = _sha256(file)
    if known.setdefault(file.name, found) != found:
        raise ValueError(
            f"{file} has sha256 {found}, but {lock} says {known[file.name]}; delete the file to "
            "fetch it again, or the line in the lock file if the archive was meant to change"
        )
    with replacing(lock) as (partial,):
        partial.write_text("".join(f"{digest}  {name}\n" for name, digest in known.items()))


def _read(lock: Path) -> str:
    return lock.read_text() if lock.exists() else ""


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while chunk := stream.read(MEBIBYTE):
            digest.update(chunk)
    return digest.hexdigest()
