"""Steps on one side of a corpus, against slow twins and against the tools they stand for."""

import subprocess
import sys
import unicodedata

import pytest
from sacremoses import MosesDetokenizer, MosesTokenizer
from sacremoses.corpus import NonbreakingPrefixes

from fairseq_rope.text.filter import filter_file
from fairseq_rope.text.normalise import Normaliser, normalise_space
from fairseq_rope.text.tokenise import Detokeniser, Tokeniser

from .conftest import ODD_LINES
from .reference import moses_tokenise

TRICKY = [
    "Mr. Smith's well-known dog isn't here... or is it?",
    "The '90s, 5,300 and 1,2 a,b A,B,C,D 'quoted' O'Brien 80's.",
    "Am 3. Mai z.B. Nr. 5 usw. und Dr. med. Weiß-Blau (3,5%).",
    "No. 7 and No. that end with No.",
    "a-b-c -d e- --f 1-2",
    "Ende.' und ``so'' weiter..",
    "",
]


def prefixes(language):
    words = [word.strip() for word in NonbreakingPrefixes().words(language)]
    return {word.split()[0]: "#NUMERIC_ONLY#" in word for word in words if word}


def moses_cli(language, *arguments, text):
    command = [sys.executable, "-m", "sacremoses", "-q", "-l", language, *arguments]
    return subprocess.run(command, input=text, capture_output=True, check=True).stdout


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("split_hyphens", [False, True])
def test_tokeniser_is_tokenizer_perl(language, split_hyphens, shared_lines):
    tokenise = Tokeniser(language, split_hyphens, escape=False)
    lines = TRICKY + shared_lines(f"newstest/newstest2014.{language}")
    for line in lines:
        expected = moses_tokenise(line, prefixes(language), language == "en", split_hyphens)
        assert tokenise(line) == expected


@pytest.mark.parametrize("language", ["en", "de", "fr", "ja"])
def test_tokeniser_is_sacremoses(language, shared_lines):
    ours, theirs = Tokeniser(language), MosesTokenizer(language)
    lines = (
        TRICKY
        + ODD_LINES
        + shared_lines("enja/dev.ja")[:200]
        + shared_lines("newstest/newstest2013.de")[:400]
    )
    for line in lines:
        assert ours(line) == theirs.tokenize(line, return_str=True).rstrip(" ")


@pytest.mark.parametrize("language", ["en", "de"])
def test_detokeniser_undoes_the_tokeniser(language, shared_lines):
    tokenise, detokenise = Tokeniser(language, split_hyphens=True), Detokeniser(language)
    theirs = MosesDetokenizer(language)
    for line in shared_lines(f"multi30k/val.{language}"):
        tokens = tokenise(line)
        assert detokenise(tokens) == theirs.detokenize(tokens.split())
        if not set(line) & set("\"'"):
            assert detokenise(tokens).replace(" ", "") == "".join(line.split())


def test_normalise_space_by_character():
    for line in ODD_LINES:
        kept = ""
        for char in unicodedata.normalize("NFC", line):
            if char.isspace():
                kept += " "
            elif unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cn", "Cs"):
                kept += char
        assert normalise_space(line) == " ".join(kept.split())


@pytest.mark.parametrize(("language", "expected"), [("en", '"Well."'), ("de", '"Well".')])
def test_normaliser_follows_the_language(language, expected):
    assert Normaliser(language)("„Well.“ ") == expected
    assert Normaliser(language)("1\xa0000") == {"en": "1.000", "de": "1,000"}[language]


@pytest.mark.parametrize("language", ["en", "de"])
def test_normaliser_is_the_sacremoses_command(language, shared_lines):
    lines = [normalise_space(line) for line in shared_lines(f"newstest/newstest2014.{language}")]
    theirs = moses_cli(language, "normalize", text=("\n".join(lines) + "\n").encode())
    ours = Normaliser(language)
    assert [ours(line) for line in lines] == [
        " ".join(line.split()) for line in theirs.decode().split("\n")[:-1]
    ]


@pytest.mark.parametrize("language", ["en", "de"])
def test_normalising_twice_changes_no_space(language):
    normalise = Normaliser(language)
    for line in map(normalise, ODD_LINES):
        assert line == normalise_space(line)


@pytest.mark.parametrize(
    "step", [Normaliser("de"), Tokeniser("de"), Detokeniser("de"), normalise_space]
)
def test_every_line_stays_a_line(step, odd_file, tmp_path):
    report = filter_file("step", step, odd_file, tmp_path / "out", workers=2)
    assert report.read == report.written == len(ODD_LINES)
    assert (tmp_path / "out").read_bytes().count(b"\n") == len(ODD_LINES)


@pytest.mark.parametrize(
    "arguments",
    [
        ("normalise", "--language", "de"),
        ("tokenise", "--language", "de", "--split-hyphens"),
        ("tokenise", "--language", "de", "--no-escape"),
        ("detokenise", "--language", "de"),
    ],
)
def test_as_filter_and_from_file_to_file(cli, arguments, odd_file, tmp_path):
    piped = cli(*arguments, input=odd_file.read_bytes())
    cli(*arguments, odd_file, tmp_path / "out")
    assert piped.stdout == (tmp_path / "out").read_bytes()
    assert piped.stdout.count(b"\n") == len(ODD_LINES)
    assert f"{len(ODD_LINES)} lines in, {len(ODD_LINES)} out".encode() in piped.stderr
