"""How fairseq finds the plugin, and what it says where it does not."""

import shutil
import sys
from pathlib import Path

import fairseq
import fairseq_cli
import pytest

from .commands import GENERATION, PLUGIN, ROOT, hypotheses, run, training

ONE_STEP = "--max-update 1 --disable-validation --no-save --arch roformer_transformer_tiny"


@pytest.fixture
def arguments(data, tmp_path):
    return training(data, tmp_path / "model", ONE_STEP)


@pytest.fixture
def beside_fairseq(tmp_path):
    """A folder like site-packages after `pip install`: the package lies beside fairseq."""
    folder = tmp_path / "site-packages"
    for package in map(Path, (fairseq.__path__[0], fairseq_cli.__path__[0], PLUGIN)):
        shutil.copytree(package, folder / package.name)
    return folder


@pytest.mark.parametrize("name", ["fairseq_rope", "fairseq_rope/", "./fairseq_rope/."])
def test_user_dir_beside_the_working_folder(name, arguments):
    assert "done training" in run("train", *arguments, "--user-dir", name, cwd=ROOT)


def test_user_dir_as_an_absolute_path_from_another_folder(arguments, tmp_path):
    line = [*arguments, "--user-dir", f"{PLUGIN}/"]
    assert "done training" in run("train", *line, cwd=tmp_path)


def test_user_dir_by_name_from_another_folder_where_the_package_is_installed(
    arguments, tmp_path, beside_fairseq
):
    command = [sys.executable, "-m", "fairseq_cli.train"]
    line = [*arguments, "--user-dir fairseq_rope"]
    assert "done training" in run(command, *line, cwd=tmp_path, path=beside_fairseq)


def test_a_user_dir_that_is_not_there_is_named(arguments, tmp_path):
    line = [*arguments, "--user-dir fairseq_rope"]
    printed = run("train", *line, cwd=tmp_path, fails=True)
    assert f"FileNotFoundError: {tmp_path}/fairseq_rope" in printed


def test_a_user_dir_forgotten_at_generation_is_named(data, trained):
    """fairseq's message breaks on the braces that it prints, and shows the first option alone."""
    printed = run("generate", data, "--path", trained.last, GENERATION, fails=True)
    assert printed.strip().endswith("""KeyError: "'user_dir'\"""")


def test_a_user_dir_forgotten_in_training_leaves_the_architecture_unknown(arguments):
    printed = run("train", *arguments, fails=True)
    assert "invalid choice: 'roformer_transformer_tiny' (choose from" in printed


def test_generation_from_another_folder_than_training(data, trained, tmp_path):
    line = [data, "--path", trained.last, "--user-dir", PLUGIN, GENERATION]
    assert len(hypotheses(run("generate", *line, cwd=tmp_path))) == 24
