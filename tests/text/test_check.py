"""check-data: every fault is found, located, and gone after --fix."""

import pytest

from fairseq_rope.text.check import CorpusCheck, fix_corpus, line_problems

from .conftest import ODD_LINES

ENGLISH = "The dog is in the house and it is not for the cat number {}."
GERMAN = "Der Hund ist nicht im Haus und das ist für die Katze Nummer {}."


@pytest.fixture
def corpus(tmp_path):
    """corpus(edit=None): a sound corpus of 50 pairs, each side as bytes after edit(lines)."""

    def write(edit=lambda source, target: None):
        source, target = (
            [text.format(n).encode() for n in range(50)] for text in (ENGLISH, GERMAN)
        )
        edit(source, target)
        for name, lines in (("s", source), ("t", target)):
            (tmp_path / name).write_bytes(b"".join(line + b"\n" for line in lines))
        return [tmp_path / "s", tmp_path / "t"]

    return write


def put(side, line, value):
    def edit(source, target):
        (source, target)[side][line] = value

    return edit


def test_a_sound_corpus(corpus, cli):
    paths = corpus()
    check = CorpusCheck(paths, ("en", "de"))
    assert check.usable and list(check.findings()) == []
    result = cli("check-data", *paths, "--languages", "en", "de")
    assert result.stdout.endswith(b"usable\n") and b"50 lines end in LF" in result.stdout


@pytest.mark.parametrize(
    ("edit", "problem", "first", "fatal"),
    [
        (put(0, 2, b"caf\xe9"), "invalid UTF-8", "s, line 3, byte 4", True),
        (put(1, 4, "ü\x85ü b c d".encode()), "break lines", "t, line 5", True),
        (put(1, 4, "a\u2028b c d".encode()), "break lines", "t, line 5", True),
        (put(0, 0, b"a\rb c d e f"), "break lines", "s, line 1", True),
        (put(0, 0, ENGLISH.encode() + b"\r"), "CRLF", "s, line 1", False),
        (put(0, 1, b"  "), "empty", "s, line 2", False),
        (put(1, 1, b"der <unk> Hund ist da nicht"), "fairseq reserves", "t, line 2", False),
        (put(0, 0, b"a b\0c d e f g"), "without a glyph", "s, line 1", False),
        (put(0, 0, "\ufeffa b c d e".encode()), "without a glyph", "s, line 1", False),
        (put(0, 0, "a\xa0b c d e f".encode()), "fairseq breaks words", "s, line 1", False),
        (put(0, 9, b"a " * 251), "longer than 250", "line 10", False),
        (put(1, 9, "語".encode() * 2501), "2,500 characters", "line 10", False),
        (put(0, 9, b"words " * 150), "ratio above 9", "line 10", False),
        (put(0, 9, GERMAN.format(9).encode()), "target the same", "line 10", False),
        (lambda s, t: (s.append(s[3]), t.append(t[3])), "repeated pairs", "line 51", False),
    ],
)
def test_a_fault_is_found_and_mended(edit, problem, first, fatal, corpus, tmp_path):
    paths = corpus(edit)
    check = CorpusCheck(paths)
    (finding,) = (f for f in check.findings() if problem in f.problem)
    assert check.usable == (not fatal)
    assert finding.count == 1 and finding.first.endswith(first) and finding.fatal == fatal
    fixed = [tmp_path / "fixed.s", tmp_path / "fixed.t"]
    fix_corpus(paths, fixed)
    assert list(CorpusCheck(fixed).findings()) == []


def test_unequal_line_counts(corpus, cli):
    def lose_a_line(source, target):
        source[10] = b"Here."
        target[10] = b"Hier steht nun sehr viel mehr, als auf der anderen Seite zu lesen war."
        del source[30]

    paths = corpus(lose_a_line)
    result = cli("check-data", *paths, code=1)
    assert (
        b"unequal line counts, 49 and 50; first: suspicious pair, line 11: 'Here.'" in result.stdout
    )
    result = cli("check-data", *paths, "--fix", "a", "b", code=1)
    assert b"has 49 lines" in result.stderr


def test_the_command_mends(corpus, cli, tmp_path):
    paths = corpus(put(0, 2, b"caf\xe9"))
    assert b"ERROR  1 x invalid UTF-8" in cli("check-data", *paths, code=1).stdout
    fixed = [tmp_path / "fixed.s", tmp_path / "fixed.t"]
    result = cli("check-data", *paths, "--fix", *fixed)
    assert b"50 lines in, 49 out (dropped: 1 invalid UTF-8)" in result.stderr


@pytest.mark.parametrize(
    "sentence",
    ["これは犬ではなく猫です、番号は{}", "这是第{}只猫而不是狗", "นี่คือแมวไม่ใช่สุนัขหมายเลข{}"],
)
def test_a_language_without_spaces_is_no_fault(sentence, corpus, cli, tmp_path):
    paths = corpus(
        lambda source, target: target.__setitem__(
            slice(None), [sentence.format(n).encode() for n in range(50)]
        )
    )
    assert list(CorpusCheck(paths).findings()) == []
    result = cli("check-data", *paths, "--fix", tmp_path / "f.s", tmp_path / "f.t")
    assert b"50 lines in, 50 out" in result.stderr


def test_nothing_left_is_a_failure(corpus, cli, tmp_path):
    paths = corpus(lambda source, target: target.__setitem__(slice(None), [b""] * 50))
    result = cli("check-data", *paths, "--fix", tmp_path / "f.s", tmp_path / "f.t", code=1)
    assert b"50 lines in, 0 out (dropped: 50 empty lines): nothing is left" in result.stderr
    assert not (tmp_path / "f.s").exists()


def test_what_cannot_be_mended_stays_unusable(corpus, cli, tmp_path):
    source, target = corpus()
    fixed = [tmp_path / "f.s", tmp_path / "f.t"]
    arguments = ("check-data", target, source, "--languages", "en", "de", "--fix", *fixed)
    assert b"what is written: not usable" in cli(*arguments, code=1).stdout


@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_side(corpus, side, cli):
    paths = corpus(lambda *lines: lines[side].clear())
    assert b"empty corpus" in cli("check-data", *paths, code=1).stdout


def test_the_same_file_twice(corpus, cli):
    source, _ = corpus()
    assert b"mostly the same" in cli("check-data", source, source, code=1).stdout


def test_swapped_languages(corpus, cli):
    source, target = corpus()
    result = cli("check-data", target, source, "--languages", "en", "de", code=1)
    assert b"not en but de" in result.stdout and b"not de but en" in result.stdout


def test_counts_are_those_of_the_tools(odd_file):
    check = CorpusCheck([odd_file, odd_file])
    assert check.lines == [len(ODD_LINES)] * 2
    with open(odd_file, encoding="utf-8") as stream:
        assert check.lines_to_open[0] == sum(1 for _ in stream)
    whole = odd_file.read_bytes().decode()
    assert check.lines_to_splitlines[0] == len(whole.splitlines())


def test_fixing_keeps_only_sound_lines(odd_file, tmp_path):
    other = tmp_path / "numbers"
    other.write_text("".join(f"{number} words here\n" for number in range(len(ODD_LINES))))
    report = fix_corpus([odd_file, other], [tmp_path / "s", tmp_path / "t"])
    assert report.read == len(ODD_LINES) and sum(report.dropped.values()) == 3
    for line in (tmp_path / "s").read_text("utf-8").split("\n")[:-1]:
        assert list(line_problems(line)) == []
