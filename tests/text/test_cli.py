"""The command as a whole."""

import subprocess
import sys
from importlib import import_module

import pytest

from fairseq_rope.cli.main import SUBCOMMANDS, main

from .conftest import ROOT


def module(subcommand):
    return f"fairseq_rope.cli.{subcommand.replace('-', '_')}"


def test_help_lists_every_subcommand(cli):
    out = cli("--help").stdout.decode()
    assert all(name in out for name in SUBCOMMANDS)


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help(cli, name):
    assert b"usage: fairseq-rope" in cli(name, "--help").stdout


def test_an_unknown_subcommand_gets_the_choices(cli):
    result = cli("tokenize", code=2)
    assert all(name.encode() in result.stderr for name in SUBCOMMANDS)


def test_a_missing_file_is_named(cli):
    result = cli("normalise", "--language", "en", "nowhere.txt", code=1)
    assert b"nowhere.txt" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tokenise", "--language", "EN"), b"two or three small letters, such as en or de: 'EN'"),
        (("normalise", "--language", "../x"), b"two or three small letters"),
        (("check-data", "s", "t", "--languages", "en", "german"), b"two or three small letters"),
        (("normalise", "--language", "en", "--workers", "x"), b"from 1 to 999,999,999: 'x'"),
        (("normalise", "--language", "en", "--workers", "0"), b"from 1 to 999,999,999: '0'"),
        (("segment", "learn", "a", "--model", "m", "--size", "9" * 14), b"from 1 to 999,999,999"),
        (("clean", "--max-ratio", "nan", "a", "b", "c", "d"), b"a number of 1 or more: 'nan'"),
        (("clean", "--max-ratio", "0.2", "a", "b", "c", "d"), b"a number of 1 or more: '0.2'"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(cli, arguments, message):
    assert message in cli(*arguments, code=2).stderr


def test_running_out_of_memory_is_said(monkeypatch, capsys):
    def fail(args):
        raise MemoryError

    monkeypatch.setattr("fairseq_rope.cli.report.run", fail)
    assert main(["report", "figures"]) == 1
    assert "error: MemoryError" in capsys.readouterr().err


def test_a_language_without_rules_of_its_own_is_said(cli, toy_file):
    assert b"warning" not in cli("tokenise", "--language", "de", toy_file).stderr
    result = cli("tokenise", "--language", "ja", toy_file)
    assert b"Moses has no rules for ja and takes the English ones" in result.stderr


def test_text_needs_neither_torch_nor_fairseq():
    names = [module(name) for name in SUBCOMMANDS if name not in ("average", "export")]
    code = f"import sys, importlib\nfor name in {names}: importlib.import_module(name)\n"
    code += "assert not {'torch', 'fairseq'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(ROOT)})


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_the_contract_of_a_subcommand(name):
    subcommand = import_module(module(name))
    assert callable(subcommand.add_arguments) and callable(subcommand.run)
