"""Archives from the web or a folder, whole and always the same."""

from __future__ import annotations

import hashlib
import re
import shutil
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from .lines import read_lines, replacing
from .report import with_progress

MEBIBYTE = 1 << 20

PARTIAL_CONTENT, NOTHING_LEFT = 206, 416
"""The HTTP statuses for the rest of a file, and for a rest that begins at its end or after it."""

LOCK_LINE = re.compile(r"([0-9a-f]{64}) [ *](.+)")


def fetch(source: str, target: Path, lock: Path) -> None:
    """Make ``target`` a copy of ``source`` (an http(s) or file URL, or a path) and check its hash.

    An interrupted download goes on where it stopped, unless the server says that the file has
    changed or does not say what version it is. ``lock`` holds lines as sha256sum writes
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
    partial, version = (target.with_name(f"{target.name}.{end}") for end in ("part", "version"))
    try:
        while not _download_rest(url, partial, version):
            partial.unlink()
    except (HTTPException, URLError, ConnectionError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise OSError(
            f"{url}: {reason}; run again, or get {target.name} elsewhere and name its folder"
        ) from None
    partial.rename(target)
    version.unlink()


def _download_rest(url: str, partial: Path, version: Path) -> bool:
    """Add what ``partial`` lacks, or begin anew if the file is no longer of the noted version.

    Returns False for a ``partial`` that is no beginning of the file.
    """
    known = version.read_text() if version.exists() and partial.exists() else ""
    have = partial.stat().st_size if known else 0
    headers = {"Range": f"bytes={have}-", "If-Range": known} if have else {}
    try:
        response = urlopen(Request(url, headers=headers), timeout=60)
    except HTTPError as error:
        if not have or error.code != NOTHING_LEFT:
            raise
        return error.headers["Content-Range"] == f"bytes */{have}"
    with response:
        resumed = have > 0 and response.status == PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            return False
        if not resumed:
            partial.unlink(missing_ok=True)
            version.write_text(_version(response.headers))
        with open(partial, "ab") as output:
            chunks = iter(lambda: response.read(MEBIBYTE), b"")
            output.writelines(with_progress(chunks, f"fetch {partial.stem}", "MiB"))
    length = response.headers["Content-Length"]
    now, size = partial.stat().st_size, int(length or 0) + (have if resumed else 0)
    if length and now != size:
        raise ValueError(
            f"{url}: the connection ended after {now:,} of {size:,} bytes; "
            "run again to fetch the rest"
        )
    return True


def _version(headers: Message) -> str:
    """Return what tells a file from its later versions; empty if the server does not say."""
    tag = headers.get("ETag", "")
    return tag if tag.startswith('"') else headers.get("Last-Modified", "")


def _check_hash(file: Path, lock: Path) -> None:
    known = _read_lock(lock)
    found = _sha256(file)
    if known.setdefault(file.name, found) != found:
        raise ValueError(
            f"{file} has sha256 {found}, but {lock} says {known[file.name]}; delete the file to "
            "fetch it again, or the line in the lock file if the archive was meant to change"
        )
    with replacing(lock) as (partial,):
        partial.write_text("".join(f"{digest}  {name}\n" for name, digest in known.items()))


def _read_lock(lock: Path) -> dict[str, str]:
    """Return digests by the names of the files."""
    known = {}
    for number, line in enumerate(read_lines(lock) if lock.exists() else (), 1):
        match = LOCK_LINE.fullmatch(line)
        if not match:
            raise ValueError(
                f"{lock}: line {number} must be a sha256, two spaces and a file's name, but is "
                f"{line!r}; mend or delete it"
            )
        known[match[2]] = match[1]
    return known


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with open(file, "rb") as stream:
        while chunk := stream.read(MEBIBYTE):
            digest.update(chunk)
    return digest.hexdigest()
