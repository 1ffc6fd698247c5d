"""Position schemes at the same size, data, seeds and updates, also on lines longer than trained on.

    python -m benchmarks.positions DATA [--work positions] [--rows ROW ...] [--seeds 1 2 3]
                                        [--short-seeds 1] [--updates 1500] [--jobs 2]
    python -m benchmarks.positions --quick

DATA is as for benchmarks.multi30k. Tables and two plots go to docs/results.md and beside it, after
each seed. A run that is done is not done again, and one that was stopped goes on. --quick makes the
same of a few updates, two rows and, without DATA, a made-up text, in the work folder alone.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Callable

from .pipeline import prepare
from .position_data import prepare_short, write_sets
from .position_page import write_page
from .position_rows import ROWS, SCHEMES
from .position_runs import Bench, Run, evaluate, train
from .results_page import PAGE
from .toy_text import write_toy_text

MERGES, BATCH_TOKENS, UPDATES = 6000, 1024, 1500
QUICK_MERGES, QUICK_TOKENS, QUICK_UPDATES = 100, 400, 20
QUICK_ROWS = ["rotary, source too, yarn scaling", "sinusoidal, trained on pairs too"]


class Progress:
    """Prints what ends, of `total` runs, and the time that the rest should take."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.start = total, 0, time.monotonic()

    def __call__(self, what: str) -> None:
        self.done += 1
        spent = (time.monotonic() - self.start) / 60
        left = spent / self.done * (self.total - self.done)
        print(f"[{self.done}/{self.total}] {what}; {left:.0f} minutes left", flush=True)


def do_all(
    function: Callable[[Run, Bench], Any], runs: list[Run], bench: Bench, jobs: int
) -> dict[Run, Any]:
    """function(run, bench) for all runs, `jobs` side by side; a failure stops it when all ended."""
    progress = Progress(len(runs))
    results = {}
    with ThreadPoolExecutor(jobs) as pool:
        pending = {pool.submit(function, run, bench): run for run in runs}
        for future in as_completed(pending):
            results[pending[future]] = future.result()
            progress(f"{function.__name__} {pending[future]}")
    return {run: results[run] for run in runs}


def runs_of(seed: int, options: argparse.Namespace) -> list[Run]:
    """All rows on all data and, for some seeds, the schemes on the shorter sentences."""
    runs = [Run(row, seed) for row in options.rows]
    if seed in options.short_seeds:
        trainings = dict.fromkeys(ROWS[row].training for row in options.rows)
        runs += [Run(name, seed, short=True) for name in trainings if name in SCHEMES]
    return runs


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--work", type=Path, default=Path("positions"), help="folder to write to")
    parser.add_argument("--rows", nargs="+", choices=ROWS, metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument(
        "--short-seeds",
        type=int,
        nargs="*",
        default=[1],
        help="those of the seeds with which models are trained on the shorter sentences too",
    )
    parser.add_argument("--updates", type=int)
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one core each")
    parser.add_argument("--quick", action="store_true", help="try the benchmark in a minute")
    options = parser.parse_args()
    if not (options.data or options.quick):
        parser.error("DATA is needed without --quick")
    options.rows = options.rows or (QUICK_ROWS if options.quick else list(ROWS))
    options.seeds = options.seeds or ([1] if options.quick else [1, 2, 3])
    options.updates = options.updates or (QUICK_UPDATES if options.quick else UPDATES)
    return options


def main() -> None:
    options = arguments()
    work = options.work.resolve()
    if options.quick and not options.data:
        options.data = work / "toy"
        write_toy_text(options.data)
    sizes = (QUICK_TOKENS, QUICK_MERGES) if options.quick else (BATCH_TOKENS, MERGES)
    bench = Bench(work, options.updates, *sizes)
    prepare(options.data, work, bench.merges)
    write_sets(bench.sets, work)
    prepare_short(work)
    results: dict[Run, Any] = {}
    for seed in options.seeds:
        runs = runs_of(seed, options)
        models = list(dict.fromkeys(run.model for run in runs))
        do_all(train, models, bench, options.jobs)
        results |= do_all(evaluate, runs, bench, options.jobs)
        page = work / "results.md" if options.quick else PAGE
        write_page(results, bench, page)
    print(f"written: {page}")


if __name__ == "__main__":
    main()
