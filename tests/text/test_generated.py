"""Hypotheses back in the order of the source."""

import pytest


def test_blank_and_skipped_lines_keep_their_places(cli, tmp_path):
    (tmp_path / "src").write_text("one\n\ntwo\n   \nthree\nfour\n")
    (tmp_path / "out").write_text("log\nH-3\t-1\tvier\nH-0\t-1\teins\nH-2\t-1\tdrei\nH-2\t-2\tx\n")
    result = cli("hypotheses", "--source", "src", "out", cwd=tmp_path)
    assert result.stdout == b"eins\n\n\n\ndrei\nvier\n"
    assert b"6 lines, 1 skipped: lines 3, blank in the output" in result.stderr


@pytest.mark.parametrize(
    ("generated", "message"),
    [
        ("", b"no hypothesis"),
        ("one\ntwo\n", b"no hypothesis"),
        ("S-0\tone\nS-1\ttwo\n", b"no hypothesis"),
        ("H-0\t-1\tA\nH-1\t-1\tB\nH-2\t-1\tC\n", b"H-2 has no line in the source, which has 2"),
        ("H-999999999999\t-1\tA\n", b"H-999999999999 has no line"),
    ],
)
def test_output_of_another_source_is_refused(cli, tmp_path, generated, message):
    (tmp_path / "src").write_text("one\n\ntwo\n")
    (tmp_path / "gen").write_text(generated)
    result = cli("hypotheses", "--source", "src", "gen", "out", cwd=tmp_path, code=1)
    assert message in result.stderr and b"gen, for src" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_source_without_sentences_has_no_hypotheses(cli, tmp_path):
    (tmp_path / "src").write_text("\n\n")
    (tmp_path / "gen").write_text("")
    assert cli("hypotheses", "--source", "src", "gen", cwd=tmp_path).stdout == b"\n\n"


@pytest.mark.parametrize("output", ["src", "gen", "./src", "link"])
def test_what_is_read_is_not_overwritten(cli, tmp_path, output):
    (tmp_path / "src").write_text("one\n")
    (tmp_path / "gen").write_text("H-0\t-1\teins\n")
    (tmp_path / "link").symlink_to("gen")
    result = cli("hypotheses", "--source", "src", "gen", output, cwd=tmp_path, code=1)
    assert b"`OUTPUT` must be a file of its own" in result.stderr
    assert (tmp_path / "src").read_text() == "one\n"
    assert (tmp_path / "gen").read_text() == "H-0\t-1\teins\n"
