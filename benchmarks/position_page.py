"""The results of benchmarks.positions as tables in Markdown, beside two plots."""

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .plots import Curve, draw
from .position_data import BINS, SENTENCES, SHORT_SHARE, length_bins, length_limits
from .position_rows import FACTOR, TRAINED_LENGTH
from .position_runs import CHECKPOINTS, Bench, Run
from .results_page import write_section
from .translation_quality import repetition_rate, signature

Figures = dict[str, Any]

TEXT = """## Position schemes

Made by `python -m benchmarks.positions DATA --updates {updates}` from the raw text of Multi30k,
English to German, with the scripts of [examples/wmt14_en_de](../examples/wmt14_en_de): Moses
tokens, joint BPE of {merges} merges; 3+3 layers, width 128, feed-forward 256, 4 heads, dropout 0.1;
{updates} updates of {tokens} target tokens at most, peak rate 3e-3; the mean of the last 5
checkpoints, {interval} updates apart; beam 4, length penalty 0.6. The rows differ in the named
options alone.
Seeds {seeds}: the mean, and the lowest and highest in brackets. Speeds are of training, one thread
each with other runs beside it; benchmarks.training measures speed better.

* *source too*: `--rope-cross-attention`.
* *trained on pairs too*: half of the training examples are two random sentence pairs in one
  (`--task translation_concat`), in as many updates.
* *scaling*: the same trained models, translating with another `--rope-scaling`, factor {factor},
  and `yarn` with `--rope-original-positions {length}`.

### sacreBLEU by sentences a line

The test set with {sentences} consecutive sentences a line, the references joined likewise. Training
has one sentence a line where the row does not say otherwise.

{0}

![BLEU against the length of a line]({4})

![Validation loss against updates]({3})

### Repetition and length

The share of repeated 4-grams in per cent / the length beside the reference's. A 4-gram of words is
repeated if it stands earlier in the same line too; the length is in sacreBLEU's tokens. By
sentences a line:

{1}

### Trained on short sentences only

sacreBLEU of single sentences by the pieces of their source, after a training on the {short} % of
the pairs with the shortest sources (up to {limit} pieces), seed {short_seeds}. The second group
ends where {middle} % of the training pairs do.

{2}

Signature: `{signature}`
"""


def write_page(results: dict[Run, Figures], bench: Bench, page: Path) -> None:
    """Write the section of this benchmark, and the plots into the page's folder."""
    whole, short = by_row(results, short=False), by_row(results, short=True)
    names = ["positions_loss.svg", "positions_bleu.svg"]
    draw(loss_curves(whole), "updates", "validation loss, bits a token", page.parent / names[0])
    draw(bleu_curves(whole, bench), "source words a line", "sacreBLEU", page.parent / names[1])
    tables = [bleu_table(whole), repetition_table(whole, bench), bins_table(short, bench)]
    write_section("positions", TEXT.format(*tables, *names, **facts(bench, list(results))), page)


def by_row(results: dict[Run, Figures], short: bool) -> dict[str, list[Figures]]:
    """The figures of each row, an item for each seed."""
    rows: dict[str, list[Figures]] = {}
    for run, figures in results.items():
        if run.short == short:
            rows.setdefault(run.row, []).append(figures)
    return rows


def bleu_table(rows: dict[str, list[Figures]]) -> str:
    head = ["", "parameters", "tokens/s", *map(str, SENTENCES)]
    return table(
        head,
        (
            [
                name,
                f"{seeds[0]['parameters']:,}",
                f"{statistics.mean(figures['speed'] for figures in seeds):,.0f}",
                *(spread(figures["sets"][str(n)]["bleu"] for figures in seeds) for n in SENTENCES),
            ]
            for name, seeds in rows.items()
        ),
    )


def repetition_table(rows: dict[str, list[Figures]], bench: Bench) -> str:
    def cell(repetition: float, length: float) -> str:
        return f"{100 * repetition:.1f} / {length:.2f}"

    references = bench.sets.parts(bench.sets.references)
    body = [["the references", *(cell(repetition_rate(lines), 1.0) for lines in references)]]
    for name, seeds in rows.items():
        sets = [[figures["sets"][str(n)] for figures in seeds] for n in SENTENCES]
        means = [
            [statistics.mean(s[key] for s in of_set) for key in ("repetition", "length")]
            for of_set in sets
        ]
        body.append([name, *(cell(*pair) for pair in means)])
    return table(["", *map(str, SENTENCES)], body)


def bins_table(rows: dict[str, list[Figures]], bench: Bench) -> str:
    limits = length_limits(bench.work)
    names = [f"up to {limits[0]}", f"up to {limits[1]}", f"above {limits[1]}"]
    sizes = map(len, length_bins(bench.work))
    head = ["", *(f"{name} ({size} lines)" for name, size in zip(names, sizes))]
    return table(
        head,
        (
            [
                name,
                *(
                    spread(figures["bins"][number]["bleu"] for figures in seeds)
                    for number in range(len(names))
                ),
            ]
            for name, seeds in rows.items()
        ),
    )


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def spread(values: Iterable[float]) -> str:
    """The mean and, of several, the range."""
    found = list(values)
    mean = f"{statistics.mean(found):.1f}"
    return mean if len(found) == 1 else f"{mean} ({min(found):.1f} to {max(found):.1f})"


def loss_curves(rows: dict[str, list[Figures]]) -> list[Curve]:
    """Of each trained model, the mean over seeds; a scaling changes no training."""
    curves = {}
    for name, seeds in rows.items():
        updates = sorted(map(int, seeds[0]["losses"]))
        means = [statistics.mean(f["losses"][str(update)] for f in seeds) for update in updates]
        curves.setdefault(tuple(means), Curve(name, updates, means))
    return list(curves.values())


def bleu_curves(rows: dict[str, list[Figures]], bench: Bench) -> list[Curve]:
    sources = bench.sets.parts(bench.sets.sources)
    words = [statistics.mean(len(line.split()) for line in lines) for lines in sources]
    return [
        Curve(
            name,
            words,
            [statistics.mean(f["sets"][str(n)]["bleu"] for f in seeds) for n in SENTENCES],
        )
        for name, seeds in rows.items()
    ]


def facts(bench: Bench, runs: list[Run]) -> dict[str, str]:
    """What the section says of the runs."""

    def seeds(short: bool) -> str:
        return ", ".join(map(str, dict.fromkeys(run.seed for run in runs if run.short == short)))

    return {
        "updates": f"{bench.updates}",
        "merges": f"{bench.merges:,}",
        "tokens": f"{bench.batch_tokens:,}",
        "interval": f"{max(1, bench.updates // CHECKPOINTS):,}",
        "seeds": seeds(short=False),
        "short_seeds": seeds(short=True) or "none",
        "sentences": ", ".join(map(str, SENTENCES)),
        "factor": f"{FACTOR:g}",
        "length": f"{TRAINED_LENGTH}",
        "short": f"{100 * SHORT_SHARE:.0f}",
        "middle": f"{100 * BINS[1]:.0f}",
        "limit": f"{length_limits(bench.work)[0]}",
        "signature": signature(),
    }
