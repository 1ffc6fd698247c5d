"""Files: lines end at LF only, and nothing half-written is ever seen."""

import gzip
import os
import signal
import subprocess
import sys

import pytest

from fairseq_rope.text.lines import count_lines, open_outputs, read_lines, read_pairs, replacing

from .conftest import ODD_LINES, ROOT


def test_lines_end_at_lf_only(odd_file):
    assert list(read_lines(odd_file)) == ODD_LINES
    assert count_lines(odd_file) == len(ODD_LINES)


def test_a_gz_file_reads_like_the_plain_one(odd_file, tmp_path):
    path = tmp_path / "odd.gz"
    path.write_bytes(gzip.compress(odd_file.read_bytes()))
    assert list(read_lines(path)) == ODD_LINES


def test_half_a_gz_file_is_reported(tmp_path):
    path = tmp_path / "half.gz"
    path.write_bytes(gzip.compress(b"words\n" * 1000)[:-12])
    with pytest.raises(ValueError, match=r"half\.gz: the archive ends too early"):
        list(read_lines(path))


def test_invalid_utf8_is_located(tmp_path):
    path = tmp_path / "bad"
    path.write_bytes("good\n\ufeffgood\nüb\xe9r\n".encode("latin-1", "replace"))
    with pytest.raises(ValueError, match=r"bad: line 3, byte 1: 0xfc is not UTF-8"):
        list(read_lines(path))


def test_written_lines_are_read_back(tmp_path):
    path = tmp_path / "deep" / "copy"
    with open_outputs(path) as (output,):
        output.writelines(f"{line}\n" for line in ODD_LINES)
    assert list(read_lines(path)) == ODD_LINES


def test_a_failure_leaves_old_files_and_no_new_ones(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("old")
    with pytest.raises(KeyError), open_outputs(old, new) as (first, second):
        first.write("half")
        second.write("half")
        raise KeyError
    assert old.read_text() == "old" and list(tmp_path.iterdir()) == [old]


def test_binary_files_are_replaced_whole(tmp_path):
    file = tmp_path / "model"
    with replacing(file) as (partial,):
        partial.write_bytes(b"\xff")
        assert not file.exists()
    assert file.read_bytes() == b"\xff" and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("left", "right"), [("a\nb\nc\n", "a\n"), ("a\n", "a\nb\nc\n")])
def test_unequal_counts_are_both_named(tmp_path, left, right):
    (tmp_path / "l").write_text(left)
    (tmp_path / "r").write_text(right)
    message = rf"has {left.count(chr(10))} lines, .* has {right.count(chr(10))};"
    with pytest.raises(ValueError, match=message):
        list(read_pairs([tmp_path / "l", tmp_path / "r"]))


FILTER = ("normalise", "--language", "en")


def test_a_full_disk_is_said_and_nothing_half_written_stays(cli, tmp_path):
    source = tmp_path / "in"
    source.write_text("words and words\n" * 20_000)
    command = " ".join([sys.executable, "-m", "fairseq_rope.cli", *FILTER, str(source), "out"])
    # A limit of 64 KiB a file stands in for the end of the disk.
    result = subprocess.run(
        ["bash", "-c", f"ulimit -f 64; exec {command}"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
    )
    assert result.returncode == 1 and b"error: [Errno 27] File too large" in result.stderr
    assert b"Traceback" not in result.stderr and list(tmp_path.iterdir()) == [source]


def test_standard_output_on_a_full_device(cli, toy_file):
    with open("/dev/full", "wb") as full:
        result = cli(*FILTER, toy_file, code=1, stdout=full)
    assert b"No space left on device; free some space" in result.stderr


def test_a_reader_that_stops_early_is_no_error_message(toy_file, tmp_path):
    source = tmp_path / "in"
    source.write_bytes(toy_file.read_bytes() * 50)
    command = " ".join([sys.executable, "-m", "fairseq_rope.cli", *FILTER, str(source)])
    result = subprocess.run(
        ["bash", "-c", f"{command} | head -1"],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
    )
    assert result.stdout.count(b"\n") == 1 and b"rror" not in result.stderr


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_step_leaves_nothing(tmp_path, stop):
    command = [sys.executable, "-m", "fairseq_rope.cli", *FILTER, "-", str(tmp_path / "out")]
    step = subprocess.Popen(
        [*command, "--workers", "2"],
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    step.stdin.write(b"words\n" * 100_000)
    step.stdin.flush()
    assert list(tmp_path.iterdir()), "the step writes already"
    # To all its processes, as a terminal or a batch system does.
    os.killpg(step.pid, stop)
    _, printed = step.communicate(timeout=60)
    assert step.returncode == 128 + stop and b"Traceback" not in printed
    assert list(tmp_path.iterdir()) == []
