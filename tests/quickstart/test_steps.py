"""The demo's chain of commands: resumed, redone and cleared away as it should be."""

import shlex
import sys

import pytest

from examples.quickstart.steps import CommandFailed, Step, run_steps


def python(code):
    return shlex.join([sys.executable, "-c", code])


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def counting(name, *, fails=False, resumes=False, inputs=(), note=""):
    """A step that adds a line to `<name>.runs` and one to its own folder."""
    code = "; ".join(
        [
            f"open('{name}.runs', 'a').write('run\\n')",
            f"open('{name}/result', 'a').write('{note}\\n')",
            f"print('words of {name}')",
            f"raise SystemExit({int(fails)})",
        ]
    )
    return Step(name, [python(code)], resumes=resumes, inputs=inputs)


def runs(work, name):
    file = work / f"{name}.runs"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_what_is_done_is_not_done_again(work, capsys):
    chain = [counting("first"), counting("second")]
    run_steps(chain, work)
    run_steps(chain, work)
    assert runs(work, "first") == runs(work, "second") == 1
    assert "done before" in capsys.readouterr().out


def test_a_changed_command_redoes_itself_and_what_follows(work):
    run_steps([counting("first"), counting("second"), counting("third")], work)
    run_steps([counting("first"), counting("second", note="new"), counting("third")], work)
    assert [runs(work, name) for name in ("first", "second", "third")] == [1, 2, 2]
    assert (work / "second" / "result").read_text() == "new\n"


def test_a_changed_input_redoes_the_step(work):
    file = work / "text"
    for contents in ("one", "one", "two"):
        file.write_text(contents)
        run_steps([counting("first", inputs=[file])], work)
    assert runs(work, "first") == 2


def test_a_failed_step_is_cleared_away_and_stops_the_chain(work):
    with pytest.raises(
        CommandFailed,
        match=r"(?s)failed with exit code 1, its whole output is in .*words of second",
    ):
        run_steps([counting("first"), counting("second", fails=True), counting("third")], work)
    assert (work / "first" / "result").exists()
    assert not (work / "second").exists()
    assert runs(work, "third") == 0


def test_a_killed_command_is_said_to_be_killed(work):
    command = python("import os; os.kill(os.getpid(), 9)")
    with pytest.raises(CommandFailed, match="was ended by SIGKILL"):
        run_steps([Step("first", [command])], work)


def test_a_step_that_resumes_keeps_its_folder(work):
    for _ in range(2):
        with pytest.raises(CommandFailed):
            run_steps([counting("first", fails=True, resumes=True)], work)
    assert (work / "first" / "result").read_text() == "\n\n"


def test_a_step_that_resumes_begins_anew_when_an_earlier_one_has_changed(work):
    for note in ("old", "new"):
        with pytest.raises(CommandFailed):
            run_steps(
                [counting("first", note=note), counting("second", fails=True, resumes=True)], work
            )
    assert (work / "second" / "result").read_text() == "\n"


def test_an_interruption_ends_the_command_and_clears_its_step(work):
    def interrupt(line):
        raise KeyboardInterrupt

    command = python(
        "import time; open('first/half', 'w'); print('on', flush=True); time.sleep(60)"
    )
    with pytest.raises(KeyboardInterrupt):
        run_steps([Step("first", [command], interrupt)], work)
    assert not (work / "first").exists()


def test_a_command_is_shown_as_it_is_written(work, capsys):
    command = python("print(1,") + " \\\n    " + "2"
    with pytest.raises(CommandFailed):
        run_steps([Step("first", [command])], work)
    assert command in capsys.readouterr().out
