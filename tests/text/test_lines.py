"""Files: lines end at LF only, and nothing half-written is ever seen."""

import gzip
import os
import re
import signal
import subprocess
import sys

import pytest

from fairseq_rope.text.lines import count_lines, open_outputs, read_lines, read_pairs, replacing

from .conftest import ODD_LINES, ROOT

FILTER = ("normalise", "--language", "en")
SCORE = ("score", "--source-lang", "en", "--target-lang", "de", "--reference", "ref", "hyp")


def test_lines_end_at_lf_only(odd_file):
    assert list(read_lines(odd_file)) == ODD_LINES
    assert count_lines(odd_file) == len(ODD_LINES)


def test_a_gz_file_reads_like_the_plain_one(odd_file, tmp_path):
    path = tmp_path / "odd.gz"
    path.write_bytes(gzip.compress(odd_file.read_bytes()))
    assert list(read_lines(path)) == ODD_LINES


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-12],
        lambda content: content[:15] + b"\xff" * 20 + content[35:],
        lambda content: content[:-8] + b"\0" * 8,
        lambda content: b"plain text",
    ],
    ids=["half", "garbled", "checksum", "plain"],
)
def test_a_damaged_gz_file_is_named(spoil, tmp_path, cli):
    path = tmp_path / "bad.gz"
    path.write_bytes(spoil(gzip.compress(bytes(range(32, 127)) + b"words\n" * 1000)))
    with pytest.raises(ValueError, match=r"bad\.gz: damaged or no gzip file \(.*; get it again"):
        list(read_lines(path, "surrogateescape"))
    assert b"bad.gz: damaged" in cli(*FILTER, path, code=1).stderr


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


def test_links_and_pipes_stay_what_they_are(tmp_path, cli, toy_file):
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to("file")
    cli(*FILTER, toy_file, link)
    assert link.is_symlink() and count_lines(tmp_path / "file") == count_lines(toy_file)
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        cli(*FILTER, toy_file, pipe)
        assert reader.stdout.read() == (tmp_path / "file").read_bytes()
    assert pipe.is_fifo()


def test_a_gz_output_is_compressed(tmp_path, cli, toy_file):
    cli(*FILTER, toy_file, tmp_path / "plain")
    cli(*FILTER, toy_file, tmp_path / "packed.gz")
    assert list(read_lines(tmp_path / "packed.gz")) == list(read_lines(tmp_path / "plain"))
    assert gzip.decompress((tmp_path / "packed.gz").read_bytes())


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (("o", "o"), rb"must be different files, but are o, o"),
        (("o", "./o"), rb"must be different files"),
        (("-", "o"), rb"\(-\) takes one side only"),
        (("o", "folder"), rb"folder is a folder"),
    ],
)
def test_outputs_that_cannot_be_are_refused_before_work(outputs, message, tmp_path, cli, toy_file):
    (tmp_path / "folder").mkdir()
    result = cli("clean", toy_file, toy_file, *outputs, code=1, cwd=tmp_path)
    assert re.search(message, result.stderr) and result.stdout == b""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", toy_file.name]


@pytest.mark.parametrize(
    ("arguments", "closing", "name"),
    [
        (FILTER, "<&-", b"input"),
        (FILTER, ">&-", b"output"),
        (SCORE, ">&-", b"output"),
        (("report", "figures"), ">&-", b"output"),
    ],
)
def test_closed_streams_are_said(arguments, closing, name):
    command = " ".join([sys.executable, "-m", "fairseq_rope.cli", *arguments, closing])
    result = subprocess.run(
        ["bash", "-c", command],
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert result.returncode == 1 and b"standard " + name + b" is closed" in result.stderr


@pytest.mark.parametrize("command", ["dedup", "check-data"])
def test_what_is_read_twice_must_be_a_file(command, tmp_path, cli, toy_file):
    os.mkfifo(tmp_path / "pipe")
    for unfit in ("-", "pipe"):
        arguments = [unfit, toy_file] + (["o", "p"] if command == "dedup" else [])
        result = cli(command, *arguments, code=1, cwd=tmp_path, stdin=subprocess.DEVNULL)
        assert f"{unfit} is read twice, so it must be a file".encode() in result.stderr


@pytest.mark.parametrize(("left", "right"), [("a\nb\nc\n", "a\n"), ("a\n", "a\nb\nc\n")])
def test_unequal_counts_are_both_named(tmp_path, left, right):
    (tmp_path / "l").write_text(left)
    (tmp_path / "r").write_text(right)
    message = rf"has {left.count(chr(10))} lines, .* has {right.count(chr(10))};"
    with pytest.raises(ValueError, match=message):
        list(read_pairs([tmp_path / "l", tmp_path / "r"]))


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
