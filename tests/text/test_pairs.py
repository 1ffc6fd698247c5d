"""Steps on both sides of a corpus, and reading test sets."""

import pytest

from fairseq_rope.text.clean import Cleaner
from fairseq_rope.text.concatenate import concatenate
from fairseq_rope.text.dedup import first_occurrences
from fairseq_rope.text.sgm import read_sgm

from .conftest import ODD_LINES


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b", "c d e", None),
        ("a b", "c d e f", "length ratio above 1.5"),
        ("a b c d", "c d", "length ratio above 1.5"),
        ("", "c", "empty"),
        ("a", " \xa0 ", "empty"),
        ("a b c d e f", "a b c d e", "longer than 5 words"),
        ("a b c d e", "a b c d e", None),
    ],
)
def test_reasons_to_drop(source, target, reason):
    assert Cleaner(max_words=5)(source, target) == reason


def test_first_occurrences_by_pair_not_by_side():
    pairs = [("a", "b"), ("a", "c"), ("ab", ""), ("a", "b"), ("", "ab"), ("ab", ""), ("a", "b")]
    seen = set()
    expected = [not (pair in seen or seen.add(pair)) for pair in pairs]
    assert first_occurrences(pairs).tolist() == expected
    assert first_occurrences([]).tolist() == []


def test_clean_then_dedup(cli, tmp_path):
    (tmp_path / "s").write_text("a\nb b b\n\na\nc\n")
    (tmp_path / "t").write_text("x\ny\nz\nx\nw\n")
    cli("clean", "--report", "r", "s", "t", "cs", "ct", cwd=tmp_path)
    cli("dedup", "--report", "r", "--name", "once", "cs", "ct", "ds", "dt", cwd=tmp_path)
    assert (tmp_path / "ds").read_text() == "a\nc\n" and (tmp_path / "dt").read_text() == "x\nw\n"
    table = cli("report", "r", cwd=tmp_path).stdout.decode().splitlines()
    assert " ".join(table[1].split()) == "clean 5 3 1 length ratio above 1.5, 1 empty"
    assert " ".join(table[2].split()) == "once 3 2 1 duplicate"


def test_a_step_that_leaves_nothing_fails(cli, tmp_path):
    (tmp_path / "s").write_text("a\na\n")
    (tmp_path / "t").write_text("x x\ny y\n")
    result = cli("clean", "s", "t", "cs", "ct", cwd=tmp_path, code=1)
    assert b"2 lines in, 0 out (dropped: 2 length ratio above 1.5): nothing" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]


@pytest.mark.parametrize(
    "text",
    [
        "garbage",
        "",
        "[1]",
        '{"a": 1}',
        '{"step": "x", "read": "many"}',
        '{"step": 1, "dropped": 2}',
    ],
)
def test_a_file_that_holds_no_reports_is_named(text, cli, tmp_path):
    (tmp_path / "r").write_text(f'{{"step": "good"}}\n{text}\n')
    assert b"r: line 2 is no report of a step" in cli("report", "r", cwd=tmp_path, code=1).stderr
    (tmp_path / "r").write_text("")
    assert b"r holds no reports" in cli("report", "r", cwd=tmp_path, code=1).stderr


@pytest.mark.parametrize("step", ["clean", "dedup", "concatenate"])
def test_unequal_files_stop_the_step(cli, step, tmp_path):
    (tmp_path / "s").write_text("a\nb\n")
    (tmp_path / "t").write_text("x\n")
    result = cli(step, "s", "t", "os", "ot", cwd=tmp_path, code=1)
    assert b"s has 2 lines, but t has 1" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s", "t"]


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (1, [("a", "x"), ("b", ""), ("", "z"), ("d", "w"), ("e", "v")]),
        (2, [("a b", "x"), ("d", "z w"), ("e", "v")]),
        (3, [("a b", "x z"), ("d e", "w v")]),
        (9, [("a b d e", "x z w v")]),
    ],
)
def test_concatenate_keeps_the_rest_and_leaves_out_blank_lines(sentences, expected):
    pairs = [("a", "x"), ("b", ""), ("", "z"), ("d", "w"), ("e", "v")]
    assert list(concatenate(pairs, sentences)) == expected


def test_concatenate_joins_odd_lines_alike_on_both_sides(cli, odd_file, tmp_path):
    outputs = [tmp_path / "out.s", tmp_path / "out.t"]
    result = cli("concatenate", "--sentences", 3, odd_file, odd_file, *outputs)
    assert f"{len(ODD_LINES)} lines in, 7 out".encode() in result.stderr
    assert b"the last line holds 2 of 3 sentences" in result.stderr
    groups = [ODD_LINES[start : start + 3] for start in range(0, len(ODD_LINES), 3)]
    expected = "".join(" ".join(x for x in group if x.strip()) + "\n" for group in groups)
    assert outputs[0].read_bytes() == outputs[1].read_bytes() == expected.encode()


SGM = """<srcset setid="newstest2014" srclang="any">
<doc sysid="ref" docid="1" genre="news" origlang="de">
<p>
<seg id="1">S&amp;P &quot;up&quot; &lt;3%&gt; AT&T</seg>
<seg id="2"> two
lines\u2028here </seg>
</p>
</doc>
<DOC docid="2"><SEG id="1"></SEG></DOC>
</srcset>
"""


def test_sgm_segments_are_lines(cli, tmp_path):
    path = tmp_path / "src.sgm"
    path.write_text(SGM, "utf-8")
    assert read_sgm(path, "en") == ['S&P "up" <3%> AT&T', "two lines here", ""]
    cli("sgm", "--language", "en", path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes().count(b"\n") == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SGM.replace("any", "fr"), "`--language` is en, but .* says srclang='fr'"),
        ('<refset trglang="de" srclang="en"><seg>x</seg></refset>', "says trglang='de'"),
        (SGM.replace("here </seg>", "here"), "3 segments begin, but 2 are complete"),
        ("plain text", "not a WMT test set"),
    ],
)
def test_a_wrong_sgm_is_refused(text, message, tmp_path):
    path = tmp_path / "src.sgm"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=message):
        read_sgm(path, "en")
