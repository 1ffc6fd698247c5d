"""Scores: each figure is what its recipe says."""

import random

import pytest
import sacrebleu

from fairseq_rope.scoring import (
    FIGURES,
    paired_bootstrap,
    read_hypotheses,
    score,
    split_compounds,
    suspicions,
)

from . import reference
from .test_steps import prefixes

PAIR = ("en", "de")


def edited(lines):
    """Known edits: words dropped, doubled and swapped in every third line."""
    rng = random.Random(1)
    out = list(lines)
    for index in range(0, len(out), 3):
        words = out[index].split()
        place = rng.randrange(len(words))
        edit = rng.choice(["drop", "double", "swap"])
        if edit == "swap" and place + 1 < len(words):
            words[place : place + 2] = reversed(words[place : place + 2])
        elif edit == "double":
            words.insert(place, words[place])
        else:
            del words[place]
        out[index] = " ".join(words)
    return out


@pytest.fixture
def references(shared_lines):
    return shared_lines("newstest/newstest2014.de")


def values(hypotheses, references, *figures):
    return {f.name: f.value for f in score(hypotheses, references, PAIR, figures or tuple(FIGURES))}


def test_a_reference_against_itself_is_perfect(references):
    assert len(references) == 3003
    assert values(references, references) == {
        "sacreBLEU": pytest.approx(100),
        "chrF2": pytest.approx(100),
        "TER": 0,
        "tokenised BLEU": pytest.approx(100),
        "tokenised BLEU, compounds split": pytest.approx(100),
    }


def test_figures_are_those_of_the_perl_scripts(references):
    hypotheses = edited(references)
    abbreviations = prefixes("de")
    sides = [
        [reference.moses_tokenise(line, abbreviations, english=False) for line in lines]
        for lines in (hypotheses, references)
    ]
    split = [[reference.split_compounds(line) for line in side] for side in sides]
    measured = values(hypotheses, references, "tokenised", "compound-split")
    assert measured["tokenised BLEU"] == pytest.approx(reference.multi_bleu(*sides), abs=0.01)
    assert measured["tokenised BLEU, compounds split"] == pytest.approx(
        reference.multi_bleu(*split), abs=0.01
    )
    assert len({round(value, 2) for value in measured.values()}) == 2


def test_sacrebleu_is_sacrebleu(references):
    hypotheses, references = edited(references[:100]), references[:100]
    (bleu, *_) = score(hypotheses, references, PAIR, ["sacrebleu"])
    assert bleu.value == sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert "tok:13a" in bleu.recipe and "version:" in bleu.recipe


@pytest.mark.parametrize(
    "line", ["a-b", "a-b-c", "ab-cd-ef", "a - b", "-a", "a-", "--", "---", "a--b", "x -y z-"]
)
def test_compounds_split_like_perl(line):
    assert split_compounds(line) == reference.split_compounds(line)


def test_unequal_counts_stop(cli, tmp_path):
    (tmp_path / "hyp").write_text("eins\n")
    (tmp_path / "ref").write_text("eins\nzwei\n")
    pair = ("--source-lang", "en", "--target-lang", "de")
    result = cli("score", "--reference", "ref", *pair, "hyp", cwd=tmp_path, code=1)
    assert b"1 hypotheses and 2 references" in result.stderr and result.stdout == b""


GENERATED = """2026-01-01 | INFO | fairseq_cli.generate | loading model
S-2\tdrei
T-2\tdrei
H-2\t-0.5\tdr@@ ei
D-2\t-0.5\tdrei
H-2\t-0.9\tzweite Wahl
D-2\t-0.9\tzweite Wahl
H-0\t-0.1\teins
D-0\t-0.1\teins
P-0\t-0.1 -0.2
H-1\t-inf\t
D-1\t-inf\t
Translated 3 sentences
"""


def test_generate_output_in_any_order(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text(GENERATED)
    assert read_hypotheses(path) == ["eins", "", "drei"]
    path.write_text("\n".join(line for line in GENERATED.split("\n") if not line.startswith("D-")))
    assert read_hypotheses(path) == ["eins", "", "dr@@ ei"]


def test_a_hole_in_generate_output_stops(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text(GENERATED.replace("D-1", "X-1"))
    with pytest.raises(ValueError, match=r"1 sentences are missing, the first is number 1"):
        read_hypotheses(path)


def test_the_number_of_a_sentence_costs_no_memory(tmp_path):
    path = tmp_path / "generate-test.txt"
    path.write_text("H-5000000000\t-1\tein\nP-5000000000\t-1\n")
    with pytest.raises(ValueError, match="5000000000 sentences are missing, the first is number 0"):
        read_hypotheses(path)


@pytest.mark.parametrize("odd", ["H-1\t-3.0\tfoo", "D-0\t-1\tbar", "S-7\tx", "H-" + "9" * 5000])
def test_text_with_a_line_like_fairseqs_is_text(tmp_path, odd):
    path = tmp_path / "text"
    path.write_text(f"eins\n{odd}\nzwei\n")
    assert read_hypotheses(path) == ["eins", odd, "zwei"]


@pytest.mark.parametrize("kinds", ["H", "D", "HD", "HP"])
def test_selected_lines_of_generate_output(tmp_path, kinds):
    path = tmp_path / "selected"
    path.write_text("".join(f"{line}\n" for line in GENERATED.split("\n") if line[:1] in [*kinds]))
    assert read_hypotheses(path) == ["eins", "", "drei" if "D" in kinds else "dr@@ ei"]


def test_hypotheses_from_a_pipe(cli, tmp_path):
    (tmp_path / "ref").write_text("eins\n")
    pair = ("--source-lang", "en", "--target-lang", "de")
    result = cli("score", "--reference", "ref", *pair, "-", cwd=tmp_path, input=b"eins\n")
    assert b"chrF2 = 100.00" in result.stdout


@pytest.mark.parametrize(
    ("line", "suspicion"),
    [
        ("ein Ha@@ us", "pieces of subword-nmt"),
        ("\u2581ein \u2581Haus", "pieces of sentencepiece"),
        ("er sagt &apos; ja", "entities"),
        ("ein <unk> Haus", "<unk>"),
        ("H-0\t-1.5\tein Haus", "fairseq's labels"),
        ("ein Haus .", "still tokenised"),
        ("  ", "blank"),
    ],
)
def test_what_looks_wrong_is_said(line, suspicion):
    assert list(suspicions(["Ein Haus, da."])) == []
    assert any(suspicion in found for found in suspicions([line]))


def test_the_command_with_two_systems(cli, tmp_path):
    good = [f"Das ist der Satz mit der Nummer {n} und mehr." for n in range(40)]
    (tmp_path / "ref").write_text("\n".join(good) + "\n")
    (tmp_path / "good").write_text("\n".join(good) + "\n")
    (tmp_path / "bad").write_text("\n".join(line.replace("mehr.", ".") for line in good) + "\n")
    pair = ("--source-lang", "en", "--target-lang", "de")
    result = cli("score", "--reference", "ref", *pair, "good", "bad", cwd=tmp_path)
    out = result.stdout.decode()
    assert "sacreBLEU = 100.00  [nrefs:1" in out and "compounds:split" in out
    assert "sacreBLEU of bad against good: p = 0.0" in out
    assert out.rstrip().endswith("]") and "|bs:1000|seed:12345|" in out
    assert b"warning: bad: a space before a comma or full stop on 40 lines" in result.stderr


def test_where_nothing_can_be_significant_p_is_one():
    good = [f"Das ist der Satz mit der Nummer {n} und mehr." for n in range(40)]
    bad = [line.replace("der Satz", "ein Satz") for line in good]
    swapped = [bad[0], *good[1:]], [good[0], bad[1], *good[2:]]
    unequal, _ = paired_bootstrap({"good": good, "bad": bad}, good, "de")
    equal, _ = paired_bootstrap(dict(zip("abc", [swapped[0], *swapped])), good, "de")
    single, _ = paired_bootstrap({"good": good[:1], "bad": bad[:1]}, good[:1], "de")
    assert unequal["bad"] < 0.05
    assert equal == {"b": 1, "c": 1} and single == {"bad": 1}


def test_a_system_is_not_compared_with_itself(cli, tmp_path):
    (tmp_path / "ref").write_text("eins\n")
    pair = ("--source-lang", "en", "--target-lang", "de")
    result = cli("score", "--reference", "ref", *pair, "ref", "ref", cwd=tmp_path, code=1)
    assert b"`HYP` must be different files, but are ref, ref" in result.stderr


def test_a_tokeniser_that_is_not_installed_is_named(monkeypatch):
    def fail(**options):
        raise RuntimeError

    monkeypatch.setattr("fairseq_rope.scoring.BLEU", fail)
    with pytest.raises(ValueError, match=r"tokeniser for ja .* `pip install 'sacrebleu\[ja\]'`"):
        score(["犬"], ["犬"], ("en", "ja"), ["sacrebleu"])


def test_words_are_not_counted_where_there_are_none(cli, tmp_path):
    (tmp_path / "ref").write_text("这是一只黑色的猫。\n", "utf-8")
    arguments = ("score", "--reference", "ref", "--source-lang", "en", "--target-lang", "zh", "ref")
    result = cli(*arguments, cwd=tmp_path)
    assert b"tok:zh" in result.stdout and b"tokenised" not in result.stdout
    assert b"zh has no spaces between words" in result.stderr


def test_a_language_is_a_code_that_moses_knows_or_is_warned_of(cli, tmp_path):
    (tmp_path / "ref").write_text("ein Haus\n")
    command = ("score", "--reference", "ref", "--source-lang", "en", "ref", "--target-lang")
    for wrong in ("", "EN", "pt_BR"):
        assert b"two or three small letters" in cli(*command, wrong, cwd=tmp_path, code=2).stderr
    warning = b"Moses has no rules for xx and takes the English ones"
    assert warning in cli(*command, "xx", cwd=tmp_path).stderr
    assert warning not in cli(*command, "xx", "--figures", "sacrebleu", cwd=tmp_path).stderr


def test_compound_splitting_is_for_english_german(cli, tmp_path):
    (tmp_path / "ref").write_text("un deux trois quatre-cinq\n")
    arguments = ("score", "--reference", "ref", "--source-lang", "en", "--target-lang", "fr", "ref")
    assert b"compounds" not in cli(*arguments, cwd=tmp_path).stdout
    result = cli(*arguments, "--figures", "compound-split", cwd=tmp_path, code=1)
    assert b"made for en-de, but this is en-fr" in result.stderr
    forced = cli(*arguments, "--figures", "compound-split", "--force", cwd=tmp_path)
    assert b"compounds split = 100.00" in forced.stdout
