"""Fetching from a server on this machine, from a folder, and what can go wrong."""

import hashlib
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fairseq_rope.text.fetch import fetch

CONTENT = bytes(range(256)) * 8000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(BaseHTTPRequestHandler):
    """Serves CONTENT; /ranged from any byte on, /broken only half of it, /plain without ranges."""

    asked = []

    def do_GET(self):  # noqa: N802
        wanted = self.headers["Range"]
        self.asked.append(wanted)
        start = int(wanted[len("bytes=") : -1]) if self.path == "/ranged" else 0
        if self.path == "/absent":
            return self.send_error(404)
        if start >= len(CONTENT):
            return self.send_error(416)
        self.send_response(206 if self.path == "/ranged" else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        end = len(CONTENT) // 2 if self.path == "/broken" else None
        self.wfile.write(CONTENT[start:end])

    def log_message(self, *arguments):
        pass


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
    target.parent.mkdir()
    target.with_name("a.tgz.part").write_bytes(CONTENT[:have])
    fetch(url + path, target, lock)
    assert Server.asked[-1] == f"bytes={have}-"
    assert target.read_bytes() == CONTENT and os.listdir(target.parent) == ["a.tgz"]
    assert lock.read_text() == f"{DIGEST}  a.tgz\n"


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
