"""The demo's commands, and what the environment makes of them."""

import shlex
from pathlib import Path

import pytest

from examples.quickstart.commands import Text, chain
from examples.quickstart.samples import side_by_side


def test_german_is_the_default():
    assert Text.from_environment({}) == Text("en", "de")
    assert Text.from_environment({"TARGET_LANG": ""}) == Text("en", "de")


def test_another_language_has_its_own_folder_and_its_scores_their_own_tokenizer():
    text = Text.from_environment({"TARGET_LANG": "zh-Hans"})
    assert text.folder == Path("demo/en-zh-Hans")
    assert "--target-lang zh " in chain(text)[-1].commands[0]
    assert "--target-lang zh-Hans" in chain(text)[0].commands[0]


def test_own_files_survive_the_shell(tmp_path):
    files = [tmp_path / "it's mine.txt", tmp_path / "b.txt"]
    for file in files:
        file.touch()
    text = Text.from_environment({"SRC": str(files[0]), "TGT": str(files[1])})
    first = chain(text)[0]
    assert str(files[0]) in shlex.split(first.commands[0])
    assert first.inputs == tuple(files)
    assert text.folder == Path("demo/own")


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SRC": __file__}, r"TGT must be a text file, but is '' instead"),
        ({"TARGET_LANG": "../x"}, r"TARGET_LANG must be a code such as .* '../x' instead"),
        ({"TARGET_LANG": "de fr"}, r"TARGET_LANG must be .* 'de fr' instead"),
        ({"TARGET_LANG": "de\n"}, r"TARGET_LANG must be "),
        ({"SRC": "/no/such/file", "TGT": __file__}, r"SRC must be .* '/no/such/file' instead"),
    ],
)
def test_what_cannot_be_meant_is_refused(environment, message):
    with pytest.raises(ValueError, match=message):
        Text.from_environment(environment)


def test_every_command_is_one_line_of_shell_with_nothing_left_to_fill_in():
    for step in chain(Text()):
        for command in step.commands:
            assert "{" not in command
            assert all(line.endswith("\\") for line in command.split("\n")[:-1])


def test_samples_stand_side_by_side_from_short_to_long(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    words = ["word " * length for length in range(40, 0, -1)]
    table = side_by_side({"source": words, "reference": words, "translation": words})
    rows = table.split("\n\n")
    assert rows[0].split() == ["source", "reference", "translation"]
    assert [row.count("word") for row in rows[1:]] == sorted(row.count("word") for row in rows[1:])
    assert len(rows) == 11
    assert max(map(len, table.split("\n"))) <= 60
