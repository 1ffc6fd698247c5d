"""Hypotheses back in the order of the source."""


def test_blank_and_skipped_lines_keep_their_places(cli, tmp_path):
    (tmp_path / "src").write_text("one\n\ntwo\n   \nthree\nfour\n")
    (tmp_path / "out").write_text("log\nH-3\t-1\tvier\nH-0\t-1\teins\nH-2\t-1\tdrei\nH-2\t-2\tx\n")
    result = cli("hypotheses", "--source", "src", "out", cwd=tmp_path)
    assert result.stdout == b"eins\n\n\n\ndrei\nvier\n"
    assert b"6 lines, 1 skipped: lines 3, blank in the output" in result.stderr
