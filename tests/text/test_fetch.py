"""Fetching from a server on this machine, from a folder, and what can go wrong."""

import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fairseq_rope.text.fetch import fetch

CONTENT = bytes(range(256)) * 8000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


VERSION = '"7"'


class Server(BaseHTTPRequestHandler):
    """Serves CONTENT of VERSION: /ranged from any byte on, /plain always whole, /dated with a date
    for its version, /nameless without any, /broken half of it, /chunked without its length, /cut
    without its last chunk, /silent without saying which bytes it sends."""

    asked = []

    def do_GET(self):  # noqa: N802
        wanted, path = self.headers["Range"], self.path
        self.asked.append(wanted)
        if path == "/absent":
            return self.send_error(404)
        ranged = path in ("/ranged", "/dated", "/silent")
        version = {"/dated": DATE, "/nameless": None}.get(path, VERSION)
        same = wanted and ranged and self.headers["If-Range"] == version
        start = int(wanted[len("bytes=") : -1]) if same else 0
        self.send_response(416 if start >= len(CONTENT) else 206 if same else 200)
        if version:
            self.send_header("Last-Modified" if version is DATE else "ETag", version)
        if same and path != "/silent":
            sent = "*" if start >= len(CONTENT) else f"{start}-{len(CONTENT) - 1}"
            self.send_header("Content-Range", f"bytes {sent}/{len(CONTENT)}")
        if path in ("/chunked", "/cut"):
            return self.send_chunks(last=b"0\r\n\r\n" if path == "/chunked" else b"")
        self.send_header("Content-Length", str(max(0, len(CONTENT) - start)))
        self.end_headers()
        self.wfile.write(CONTENT[start : len(CONTENT) // 2 if path == "/broken" else None])

    def send_chunks(self, last):
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"%x\r\n%b\r\n" % (len(CONTENT), CONTENT) + last)

    def log_message(self, *arguments):
        pass


DATE = "Tue, 01 Dec 2026 19:00:00 GMT"


def begin(target, content, version):
    """What an interrupted download of a version leaves."""
    target.parent.mkdir()
    target.with_name("a.tgz.part").write_bytes(content)
    target.with_name("a.tgz.version").write_text(version)


@pytest.fixture(scope="module")
def url():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "deep" / "a.tgz", tmp_path / "sha256.txt"


@pytest.mark.parametrize("path", ["/ranged", "/plain"])
@pytest.mark.parametrize("have", [0, 1000, len(CONTENT)])
def test_a_download_goes_on_where_it_stopped(url, paths, path, have):
    target, lock = paths
    begin(target, CONTENT[:have], VERSION)
    fetch(url + path, target, lock)
    assert Server.asked[-1] == (f"bytes={have}-" if have else None)
    assert target.read_bytes() == CONTENT and os.listdir(target.parent) == ["a.tgz"]
    assert lock.read_text() == f"{DIGEST}  a.tgz\n"


@pytest.mark.parametrize("path", ["/ranged", "/dated", "/nameless", "/silent", "/plain"])
@pytest.mark.parametrize("version", [VERSION, '"6"', DATE, ""])
@pytest.mark.parametrize("size", [1000, len(CONTENT), len(CONTENT) + 7])
def test_what_does_not_belong_to_the_file_is_not_used(url, paths, path, version, size):
    belongs = version == {"/dated": DATE}.get(path, VERSION) and size <= len(CONTENT)
    begin(paths[0], CONTENT[:size] if belongs else b"x" * size, version)
    fetch(url + path, *paths)
    assert paths[0].read_bytes() == CONTENT and os.listdir(paths[0].parent) == ["a.tgz"]


def test_a_length_that_is_not_told(url, paths, cli):
    result = cli("fetch", url + "/cut", paths[0], "--lock", paths[1], code=1)
    assert b"/cut: IncompleteRead" in result.stderr and b"run again" in result.stderr
    fetch(url + "/chunked", *paths)
    assert paths[0].read_bytes() == CONTENT


@pytest.mark.parametrize("line", ["no-hash", f"{DIGEST} a.tgz", f"{DIGEST}  ", ""])
def test_a_lock_that_is_none_is_located(line, paths, tmp_path):
    (tmp_path / "source").write_bytes(CONTENT)
    paths[1].write_text(f"{DIGEST}  a.tgz\n{line}\n")
    with pytest.raises(ValueError, match=r"sha256\.txt: line 2 must be a sha256"):
        fetch(str(tmp_path / "source"), *paths)
    paths[1].write_text(f"{DIGEST} *a.tgz\n")
    fetch(str(tmp_path / "source"), *paths)


def test_a_lost_connection_keeps_what_came(url, paths):
    target, lock = paths
    half = len(CONTENT) // 2
    with pytest.raises((ValueError, OSError), match=f"ended after {half:,} of {len(CONTENT):,}"):
        fetch(url + "/broken", target, lock)
    assert not target.exists() and not lock.exists()
    fetch(url + "/ranged", target, lock)
    assert Server.asked[-1] == f"bytes={half}-" and target.read_bytes() == CONTENT


@pytest.mark.parametrize("as_url", [True, False])
def test_from_a_folder(paths, tmp_path, as_url):
    source = tmp_path / "with space"
    source.write_bytes(CONTENT)
    fetch(source.as_uri() if as_url else str(source), *paths)
    assert paths[0].read_bytes() == CONTENT


def test_another_content_is_refused(paths, tmp_path, cli):
    target, lock = paths
    lock.write_text(f"{'0' * 64}  other.tgz\n{'1' * 64}  a.tgz\n")
    (tmp_path / "source").write_bytes(CONTENT)
    with pytest.raises(ValueError, match=f"has sha256 {DIGEST}, but .* says 1111"):
        fetch(str(tmp_path / "source"), target, lock)
    result = cli("fetch", tmp_path / "source", target, "--lock", lock, code=1)
    assert b"delete" in result.stderr


def test_absent_archives_are_named(url, paths, cli):
    with pytest.raises(OSError, match=r"/absent: HTTP Error 404.*get a\.tgz elsewhere"):
        fetch(url + "/absent", *paths)
    result = cli("fetch", "/nowhere/a.tgz", paths[0], "--lock", paths[1], code=1)
    assert b"/nowhere/a.tgz" in result.stderr and not paths[0].exists()


def test_no_server_is_no_traceback(paths, cli):
    result = cli("fetch", "http://127.0.0.1:9/a.tgz", paths[0], "--lock", paths[1], code=1)
    assert b"127.0.0.1:9/a.tgz" in result.stderr
