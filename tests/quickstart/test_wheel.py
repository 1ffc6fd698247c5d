"""The demo's download: never a wrong or a half file, and a message without a network."""

import hashlib

import pytest

from examples.quickstart.wheel import WHEEL, check_sha256, fetch_wheel


def test_the_file_that_is_meant_passes(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"contents")
    check_sha256(file, hashlib.sha256(b"contents").hexdigest())


def test_a_changed_file_in_the_cache_is_refused(tmp_path):
    (tmp_path / WHEEL).write_bytes(b"something else")
    with pytest.raises(ValueError, match=r"must have the sha256 8167.*Delete it and run again"):
        fetch_wheel(tmp_path)


def test_without_a_network_the_message_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    with pytest.raises(ValueError, match=r"pip could not download.*SRC=a.txt TGT=b.txt make demo"):
        fetch_wheel(tmp_path)
    assert list(tmp_path.iterdir()) == []
