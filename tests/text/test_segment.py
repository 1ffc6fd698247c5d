"""Both segmenters: their pieces are their tools', and undoing them gives the text back."""

import io
import pickle
import subprocess
import sys
from collections import Counter
from itertools import islice

import pytest
import sentencepiece
from fairseq.tokenizer import tokenize_line
from subword_nmt.apply_bpe import BPE, read_vocabulary
from subword_nmt.learn_bpe import learn_bpe

from fairseq_rope.text.lines import read_lines
from fairseq_rope.text.segment import SEGMENTERS, SubwordNmt, learn
from fairseq_rope.text.segment.merges import learn_merges, merge
from fairseq_rope.text.segment.segmenter import RESERVED

from . import reference
from .conftest import ODD_LINES

SIZE = 300


@pytest.fixture(params=SEGMENTERS)
def name(request):
    return request.param


@pytest.fixture
def model(name, toy_file, tmp_path):
    learn(name, [toy_file, toy_file], SIZE, tmp_path / "model")
    return tmp_path / "model"


def test_undo_gives_the_words_back(name, model, toy_lines):
    segmenter = SEGMENTERS[name](model)
    # sentencepiece cannot tell its own mark in the text and writes a low line for it.
    mended = [
        line.replace("\u2581", "_") if name == "sentencepiece" else line for line in ODD_LINES
    ]
    for line, expected in zip(ODD_LINES + toy_lines, mended + toy_lines):
        assert segmenter.undo(segmenter(line)) == " ".join(expected.split())


def test_fairseq_sees_the_pieces_and_no_command(name, model, toy_lines):
    segmenter = SEGMENTERS[name](model)
    for line in ODD_LINES + toy_lines + ["a<s> <s>a <unk><unk>"]:
        pieces = segmenter(line)
        assert tokenize_line(pieces) == (pieces.split(" ") if pieces else [])
        assert RESERVED.isdisjoint(pieces.split(" "))


def test_learning_again_gives_the_same_model(name, model, toy_file, tmp_path):
    learn(name, [toy_file, toy_file], SIZE, tmp_path / "again")
    assert model.read_bytes() == (tmp_path / "again").read_bytes()


def test_a_worker_gets_the_same_segmenter(name, model, toy_lines):
    segmenter = SEGMENTERS[name](model)
    copy = pickle.loads(pickle.dumps(segmenter))
    assert list(map(copy, toy_lines)) == list(map(segmenter, toy_lines))


def test_vocabularies_count_the_pieces(name, toy_file, tmp_path):
    other = tmp_path / "other"
    other.write_text("anderer Text\n" * 3)
    vocabularies = [tmp_path / "v1", tmp_path / "v2"]
    learn(name, [toy_file, other], SIZE, tmp_path / "m", vocabularies)
    segmenter = SEGMENTERS[name](tmp_path / "m")
    for path, vocabulary in zip([toy_file, other], vocabularies):
        counts = Counter(piece for line in read_lines(path) for piece in segmenter(line).split())
        rows = [line.split(" ") for line in read_lines(vocabulary)]
        assert {piece: int(count) for piece, count in rows} == counts
        assert [int(count) for _, count in rows] == sorted(counts.values(), reverse=True)


def test_the_size_is_met(name, model):
    if name == "sentencepiece":
        assert SEGMENTERS[name](model).processor.get_piece_size() == SIZE
    else:
        assert len(list(read_lines(model))) == SIZE + 1


def test_too_large_a_size_says_what_is_possible(name, toy_file, tmp_path):
    with pytest.raises(ValueError, match=r"`size`.*\d+") as raised:
        learn(name, [toy_file], 50_000, tmp_path / "m")
    assert "50000" in str(raised.value) and not (tmp_path / "m").exists()


def test_an_empty_text_is_refused(name, tmp_path):
    (tmp_path / "blank").write_text("\n \n")
    with pytest.raises(ValueError, match="blank holds no words"):
        learn(name, [tmp_path / "blank"], SIZE, tmp_path / "m")


def test_a_model_of_the_other_kind_is_refused(name, model):
    (other,) = set(SEGMENTERS) - {name}
    with pytest.raises(ValueError, match=r"`model` must be a .*, but .* is none"):
        SEGMENTERS[other](model)


def test_sentencepiece_pieces_are_those_of_whole_sentences(toy_file, toy_lines, tmp_path):
    learn("sentencepiece", [toy_file], SIZE, tmp_path / "m")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "m"))
    segmenter = SEGMENTERS["sentencepiece"](tmp_path / "m")
    for line in toy_lines:
        assert segmenter(line).split(" ") == processor.encode(line, out_type=str)


@pytest.mark.parametrize(
    "text", ["aaaa aaa aaaaaaa aa", "ababab baba abcabc bcabca abab", "a bb ccc dddd ab abc abcd"]
)
def test_merges_are_those_of_counting_anew(text, toy_lines):
    for words in (Counter(text.split() * 2), Counter(" ".join(toy_lines[:60]).split())):
        assert list(learn_merges(words)) == list(reference.learn_merges(words))


def test_a_long_word_is_merged_once_per_merge(monkeypatch):
    calls = []

    def counting(symbols, pair):
        calls.append(pair)
        return merge(symbols, pair)

    monkeypatch.setattr("fairseq_rope.text.segment.merges.merge", counting)
    words = Counter({"-" * 400: 2, "ab" * 100: 1})
    merges = list(learn_merges(words))
    assert merges == list(reference.learn_merges(words))
    assert len(calls) <= len(merges) * len(words)


def test_merges_are_those_of_subword_nmt(shared_lines):
    words = Counter(" ".join(shared_lines("multi30k/val.de")).split())
    theirs = io.StringIO()
    learn_bpe([f"{word} {count}" for word, count in words.items()], theirs, 3000, is_dict=True)
    ours = islice(learn_merges(words), 3000)
    assert [" ".join(pair) for pair in ours] == theirs.getvalue().split("\n")[1:-1]


def test_subword_nmt_pieces_are_its_commands(toy_file, tmp_path):
    learn("subword-nmt", [toy_file], SIZE, tmp_path / "m")
    main = "from subword_nmt.subword_nmt import main; main()"
    command = [sys.executable, "-c", main]
    theirs = subprocess.run(
        [*command, "learn-bpe", "-s", str(SIZE), "-i", toy_file], capture_output=True, check=True
    ).stdout
    assert (tmp_path / "m").read_bytes() == theirs
    applied = subprocess.run(
        [*command, "apply-bpe", "-c", tmp_path / "m", "-i", toy_file],
        capture_output=True,
        check=True,
    ).stdout.decode()
    segmenter = SubwordNmt(tmp_path / "m")
    assert [segmenter(line) for line in read_lines(toy_file)] == applied.split("\n")[:-1]


@pytest.mark.parametrize("threshold", [1, 20, 100])
def test_subword_nmt_keeps_to_a_vocabulary(threshold, toy_file, toy_lines, tmp_path):
    learn("subword-nmt", [toy_file], SIZE, tmp_path / "m", [tmp_path / "v"])
    known = read_vocabulary(io.StringIO((tmp_path / "v").read_text("utf-8")), threshold)
    theirs = BPE(io.StringIO((tmp_path / "m").read_text("utf-8")), vocab=known)
    ours = SubwordNmt(tmp_path / "m", tmp_path / "v", threshold)
    assert [ours(line) for line in toy_lines] == [theirs.segment(line) for line in toy_lines]


def test_merges_given_as_vocabulary_are_refused(toy_file, tmp_path):
    learn("subword-nmt", [toy_file], SIZE, tmp_path / "m", [tmp_path / "v"])
    with pytest.raises(ValueError, match=r"`vocabulary` must hold a piece and its count"):
        SubwordNmt(tmp_path / "m", tmp_path / "m")
    with pytest.raises(ValueError, match=r"`model` must be a file of subword-nmt merges"):
        SubwordNmt(tmp_path / "v")


def test_the_command(cli, name, toy_file, tmp_path):
    choice = ("--segmenter", name)
    cli("segment", "learn", *choice, "--size", SIZE, "--model", tmp_path / "m", toy_file)
    applied = cli(
        "segment", "apply", *choice, "--model", tmp_path / "m", input=toy_file.read_bytes()
    )
    assert b"pieces per word" in applied.stderr and b"warning" not in applied.stderr
    undone = cli("segment", "undo", *choice, input=applied.stdout)
    assert undone.stdout == toy_file.read_bytes()


def test_text_of_another_kind_is_noticed(cli, model, name, tmp_path):
    (tmp_path / "other").write_text("tkbdgfpr rpfgdbkt\n")
    result = cli("segment", "apply", "--segmenter", name, "--model", model, tmp_path / "other")
    assert b"warning: so many pieces per word" in result.stderr


def test_a_vocabulary_is_refused_for_sentencepiece(cli, toy_file, tmp_path):
    result = cli(
        *("segment", "apply", "--model", tmp_path / "m", "--vocabulary", "v", toy_file), code=1
    )
    assert b"`--vocabulary` is v, but sentencepiece knows no such" in result.stderr
