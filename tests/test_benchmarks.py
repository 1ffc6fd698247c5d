"""What benchmarks.positions measures, and the benchmark itself in its quick form."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import position_data
from benchmarks.position_rows import ROWS, SCHEMES, TRAININGS
from benchmarks.positions import QUICK_ROWS
from benchmarks.results_page import write_section
from benchmarks.training_log import read_training
from benchmarks.translation_quality import quality, repetition_rate

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("lines", "rate"),
    [
        ([], 0.0),
        (["a b c"], 0.0),
        (["a b c d e"], 0.0),
        (["a a a a a a"], 2 / 3),
        (["a b c d a b c d"], 1 / 5),
        (["a b c d", "a b c d"], 0.0),
        (["a b c d e f", "x x x x x"], 1 / 5),
    ],
)
def test_repetition_rate_counts_four_grams_that_stood_earlier_in_their_line(lines, rate):
    seen = total = 0
    for words in map(str.split, lines):
        for end in range(4, len(words) + 1):
            earlier = [words[stop - 4 : stop] for stop in range(4, end)]
            seen += words[end - 4 : end] in earlier
            total += 1
    assert repetition_rate(lines) == pytest.approx(rate) == pytest.approx(seen / max(total, 1))


def test_length_is_beside_the_reference():
    found = quality(["a b c d e f"], ["a b c d e f g h"])
    assert found.length == 0.75 and found.bleu == pytest.approx(100 * math.exp(1 - 8 / 6))


def test_a_section_replaces_its_own_and_leaves_the_others(tmp_path):
    page = tmp_path / "results.md"
    write_section("one", "first\n", page)
    write_section("two", "second\n", page)
    write_section("one", "third\n", page)
    text = page.read_text("utf-8")
    assert text.startswith("# Results\n") and "first" not in text
    assert text.index("third") < text.index("second")
    write_section("two", "second\n", page)
    assert page.read_text("utf-8") == text


def test_the_page_of_results_has_its_sections_marked():
    text = (ROOT / "docs" / "results.md").read_text("utf-8")
    assert re.search("<!-- multi30k -->\n## Multi30k.*\n<!-- end of multi30k -->\n", text, re.S)


LOG = """... | INFO | fairseq_cli.train | num. shared model params: 1,766,912 (num. trained: 1)
... | INFO | train_inner | {"wps": "100", "num_updates": "20"}
... | INFO | valid | {"valid_nll_loss": "9.5", "valid_num_updates": "20"}
... | INFO | train_inner | {"wps": "120", "num_updates": "40"}
... | INFO | fairseq_cli.train | num. shared model params: 1,766,912 (num. trained: 1)
... | INFO | train_inner | {"num_updates": "30"}
... | INFO | train_inner | {"wps": "900", "num_updates": "40"}
... | INFO | valid | {"valid_nll_loss": "8.5", "valid_num_updates": "20"}
... | INFO | valid | {"valid_nll_loss": "8.25", "valid_num_updates": "40"}
"""


def test_a_log_of_a_training_that_was_stopped_and_went_on(tmp_path):
    (tmp_path / "log").write_text(LOG, "utf-8")
    assert read_training(tmp_path / "log") == (1766912, 120, {20: 8.5, 40: 8.25})
    (tmp_path / "log").write_text("nothing", "utf-8")
    with pytest.raises(ValueError, match="no log of fairseq-train"):
        read_training(tmp_path / "log")


def test_test_sets_hold_the_same_sentences(tmp_path):
    (tmp_path / "text").mkdir()
    for language in ("en", "de"):
        lines = [f"{language}{number}" for number in range(10)]
        (tmp_path / "text" / f"test.{language}").write_text("\n".join(lines) + "\n")
    sets = position_data.joined_sets(tmp_path)
    for part, sentences in zip(sets.parts(sets.sources), position_data.SENTENCES):
        assert len(part) == math.ceil(10 / sentences)
        assert " ".join(part).split() == [f"en{number}" for number in range(10)]
    for source, reference in zip(sets.sources, sets.references):
        assert reference == source.replace("en", "de")
    with pytest.raises(ValueError, match="1 lines for 24"):
        sets.parts(["one"])


def test_bins_and_the_short_part_end_at_shares_of_the_training_data(tmp_path):
    (tmp_path / "pieces").mkdir()
    lines = ["x " * length + "x" for length in range(100)]
    (tmp_path / "pieces" / "train.en").write_text("\n".join(lines))
    (tmp_path / "pieces" / "test.en").write_text("\n".join(lines[60:90]))
    assert position_data.length_limits(tmp_path) == [70, 85]
    numbers = position_data.length_bins(tmp_path)
    assert numbers == [list(range(10)), list(range(10, 25)), list(range(25, 30))]


def test_every_row_has_a_training():
    assert {row.training for row in ROWS.values()} == set(TRAININGS) >= set(SCHEMES)


def tables(page):
    """The rows of each table, as cells."""
    found = re.findall(r"(?:^\|.*\|\n)+", page.read_text("utf-8"), re.M)
    return [[row.strip("| ").split(" | ") for row in rows.splitlines()] for rows in found]


@pytest.mark.timeout(900)
def test_the_quick_form_compares_two_rows_and_goes_on_where_it_was(tmp_path):
    command = [sys.executable, "-m", "benchmarks.positions", "--quick", "--work", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True)
    page = tmp_path / "results.md"
    bleu, repetition, bins = tables(page)
    assert [row[0] for row in bleu[2:]] == QUICK_ROWS
    assert [row[0] for row in repetition[2:]] == ["the references", *QUICK_ROWS]
    assert [row[0] for row in bins[2:]] == ["rotary, source too"]
    for row in (*bleu[2:], *bins[2:]):
        figures = [float(cell.replace(",", "")) for cell in row[1:]]
        assert len(figures) == len(row) - 1 and all(map(math.isfinite, figures))
    assert bleu[2][1] == bleu[3][1]  # neither scheme has parameters
    for row in repetition[2:]:
        rates = [tuple(map(float, cell.split(" / "))) for cell in row[1:]]
        assert all(0 <= rate <= 100 and length > 0 for rate, length in rates)
    for name in ("positions_loss.svg", "positions_bleu.svg"):
        assert f"({name})" in page.read_text("utf-8") and "</svg>" in (tmp_path / name).read_text()
    results = list(tmp_path.glob("runs/*/result.json"))
    losses = [list(json.loads(path.read_text())["losses"].values()) for path in results]
    assert len(losses) == 3 and all(curve[-1] < curve[0] for curve in losses)

    limit = position_data.length_limits(tmp_path)[0]
    lengths = [len(line.split()) for line in (tmp_path / "short" / "train.en").open()]
    assert max(lengths) == limit and 0.65 < len(lengths) / 600 < 0.9
    dictionaries = [tmp_path / folder / "data" / "dict.en.txt" for folder in ("", "short")]
    assert dictionaries[0].read_bytes() == dictionaries[1].read_bytes()

    written = page.read_text("utf-8")
    again = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert page.read_text("utf-8") == written and "[3/3] evaluate" in again.stdout
