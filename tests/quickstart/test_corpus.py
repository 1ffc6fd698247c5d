"""The demo's corpus: what is taken from a wheel or two files, and how it is divided."""

import json
import zipfile

import pytest

from examples.quickstart.corpus import (
    FEWEST_SENTENCES,
    MAX_CHARACTERS,
    main,
    pairs_of_files,
    pairs_of_wheel,
    split_pairs,
    write_corpus,
)

ENGLISH = {
    "title": "Living room",
    "step": {
        "user": "Enter the host name",
        "twin": "Living room",
        "only_english": "Not yet translated",
        "one_word": "Light",
        "placeholder": "Connected to {host} now",
        "markup": "See the **manual** first",
        "link": "Look at https://example.org today",
        "two_lines": "First line\nsecond line",
        "long": "word " * 31,
        "longest": "word " * 30,
        "padded": "  Kitchen table ",
    },
}
GERMAN = {
    "title": "Wohnzimmer",
    "step": {
        "user": "Gib den Hostnamen ein",
        "twin": "Wohnzimmer",
        "only_german": "Nur auf Deutsch",
        "one_word": "Licht",
        "placeholder": "Jetzt mit {host} verbunden",
        "markup": "Lies zuerst das Handbuch",
        "link": "Sieh heute nach",
        "two_lines": "Zwei Zeilen",
        "long": "Wort",
        "longest": "Wort",
        "padded": "Küchentisch",
    },
}


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "tiny.whl"
    with zipfile.ZipFile(path, "w") as archive:
        folder = "homeassistant/components/lamp/translations"
        archive.writestr(f"{folder}/en.json", json.dumps(ENGLISH))
        archive.writestr(f"{folder}/de.json", json.dumps(GERMAN))
        archive.writestr(f"{folder}/ja.json", json.dumps({"title": "居間"}))
        archive.writestr("homeassistant/components/old/translations/de.json", '{"title": "x y"}')
        archive.writestr("homeassistant/strings/en.json", '{"title": "not a translation"}')
    return path


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_wheel_gives_translated_running_text_once(wheel):
    assert pairs_of_wheel(wheel, "de") == [
        ("Enter the host name", "Gib den Hostnamen ein"),
        ("Kitchen table", "Küchentisch"),
        ("Living room", "Wohnzimmer"),
        (("word " * 30).strip(), "Wort"),
    ]


def test_wheel_counts_words_of_the_english_only(wheel):
    assert pairs_of_wheel(wheel, "ja") == [("Living room", "居間")]


def test_unknown_language_is_answered_with_those_there_are(wheel):
    with pytest.raises(ValueError, match="TARGET_LANG must be one of de, ja, but is 'xx' instead"):
        pairs_of_wheel(wheel, "xx")


def test_no_sentence_stands_in_two_parts_in_any_spelling():
    spellings = ("Turn on {}", "turn on {}.", "TURN  ON {}!", "turn-on {}", "Ｔurn on {}")
    pairs = [(text.format(n), f"{n} {text}") for n in range(1000) for text in spellings]
    parts = split_pairs(pairs)
    numbers = {
        name: {source.rstrip(".!").split()[-1] for source, _ in part}
        for name, part in parts.items()
    }
    assert {name: len(found) for name, found in numbers.items()} == {
        "test": 100,
        "valid": 50,
        "train": 850,
    }
    assert not numbers["train"] & numbers["test"]
    assert not numbers["train"] & numbers["valid"]
    assert not numbers["valid"] & numbers["test"]
    assert len(parts["train"]) == 850 * len(spellings)


def test_the_test_part_has_a_sentence_once():
    parts = split_pairs([("one", "eins"), *((f"n {n}", "x") for n in range(1200)), ("one", "ein")])
    sources = [source for source, _ in parts["test"]]
    assert len(sources) == len(set(sources)) == 120


def test_large_text_has_a_test_part_of_a_thousand():
    parts = split_pairs((f"sentence {n}", "Satz") for n in range(20_000))
    assert {name: len(part) for name, part in parts.items()} == {
        "test": 1000,
        "valid": 500,
        "train": 18_500,
    }


def test_the_split_does_not_depend_on_the_order():
    pairs = [(f"sentence {n}", f"Satz {n}") for n in range(1000)]
    assert split_pairs(pairs[::-1]) == split_pairs(pairs)


def test_files_give_their_usable_pairs(tmp_path, capsys):
    good = [f"line {n}" for n in range(FEWEST_SENTENCES)]
    odd = ["", "  ", "x" * (MAX_CHARACTERS + 1), "line 0", "u\u2028v"]
    source = write(tmp_path / "a", good + odd)
    target = write(tmp_path / "b", good + ["no source", "blank", "too long", "line 0", "u\x85v"])
    pairs = pairs_of_files(source, target)
    assert pairs == sorted([*zip(good, good), ("u\u2028v", "u\x85v")])
    assert "1,005 lines, of which 4 are left out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (["a"] * 3, ["b"] * 4, r"has 3 lines, but .* has 4"),
        ([], [], r"at least 1,000 different source sentences to learn from, but has 0 instead"),
        (["a b"] * 500, ["c d"] * 500, r"but has 1 instead"),
        (["a b", "A B!"] * 250, [f"c {n}" for n in range(500)], r"but has 1 instead"),
    ],
    ids=["unequal", "empty", "repeated", "repeated-source"],
)
def test_unusable_files_end_with_a_message_and_no_files(tmp_path, source, target, message):
    files = [write(tmp_path / "a", source), write(tmp_path / "b", target)]
    with pytest.raises(SystemExit, match=message):
        main(["--output", str(tmp_path / "out"), "--files", *map(str, files)])
    assert not (tmp_path / "out").exists()


def test_a_file_in_another_encoding_is_named_with_its_line(tmp_path):
    source = write(tmp_path / "a", ["one", "two"])
    target = tmp_path / "b"
    target.write_bytes("eins\nfünf\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"b: line 2, byte 2"):
        pairs_of_files(source, target)


def test_written_corpus_keeps_its_lines(tmp_path):
    parts = {"train": [("a\u2028b", "c\x85d"), ("e", "f")], "test": [("g", "h")]}
    write_corpus(parts, tmp_path, "en", "de")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "test.de",
        "test.en",
        "train.de",
        "train.en",
    ]
    assert (tmp_path / "train.en").read_bytes().decode() == "a\u2028b\ne\n"
    assert (tmp_path / "train.de").read_bytes().decode() == "c\x85d\nf\n"
