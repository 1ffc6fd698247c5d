"""RoFormer and fairseq's transformer on Multi30k English-German, from raw text to sacreBLEU.

    python -m benchmarks.multi30k DATA [--work multi30k] [--updates 1500] [--seeds 1 2 3] [--jobs 2]

DATA holds train, val and test_2016_flickr as NAME.en.gz and NAME.de.gz. Every run goes through the
scripts of examples/wmt14_en_de, prepare.sh once, then train.sh, average.sh, translate.sh and
score.sh, and differs in the architecture and the seed alone. The table goes to docs/results.md. A
run that is done is not done again.
"""

import argparse
import re
import shlex
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .pipeline import prepare, run_script
from .results_page import write_section

MERGES = 6000
SIZES = """
    --encoder-layers 4 --encoder-embed-dim 128 --encoder-ffn-embed-dim 256
    --decoder-layers 4 --decoder-embed-dim 128 --decoder-ffn-embed-dim 256
    --encoder-attention-heads 4 --decoder-attention-heads 4 --dropout 0.3"""
BATCH_TOKENS = 2048
TRAINING = """
    --max-update {updates} --seed {seed} --lr 3e-3 --warmup-updates 400
    --save-interval-updates 100 --save-interval 1000
    --validate-interval-updates 500 --validate-interval 1000"""
MODELS = {
    "fairseq `transformer`": "--arch transformer",
    "`roformer_transformer`": "--arch roformer_transformer",
}
SCORE = re.compile(r"sacreBLEU = ([\d.]+)  \[(.*)\]")


def run(model: str, seed: int, work: Path, updates: int) -> tuple[float, str]:
    """Train, average, translate and score one model; return sacreBLEU and its signature."""
    name = re.sub(r"\W+", "-", model).strip("-")
    folder = work / f"{name}-{updates}-{seed}"
    log = work / f"{folder.name}.log"
    result = folder / "score.txt"
    if not result.exists():
        at = {"SAVE_DIR": str(folder), "BATCH_TOKENS": str(BATCH_TOKENS)}
        training = TRAINING.format(updates=updates, seed=seed)
        options = shlex.split(f"{MODELS[model]} {SIZES} {training}")
        run_script("train.sh", log, work, *options, **at)
        run_script("average.sh", log, work, **at)
        run_script("translate.sh", log, work, **at)
        printed = run_script("score.sh", log, work, **at)
        result.write_text(printed, encoding="utf-8")
    match = SCORE.search(result.read_text(encoding="utf-8"))
    assert match is not None, result
    print(f"{model}, seed {seed}: {match[1]}", flush=True)
    return float(match[1]), match[2]


def table(scores: dict[str, list[float]], signature: str, options: argparse.Namespace) -> str:
    """The results as a section in Markdown."""
    seeds = ", ".join(map(str, options.seeds))
    rows = "\n".join(
        f"| {model} | {statistics.mean(values):.2f} | {min(values):.2f} to {max(values):.2f} | "
        f"{', '.join(f'{value:.2f}' for value in values)} |"
        for model, values in scores.items()
    )
    return f"""## Multi30k, English to German

Made by `python -m benchmarks.multi30k DATA --updates {options.updates}`, from raw text with the
scripts of [examples/wmt14_en_de](../examples/wmt14_en_de): Moses tokens, joint BPE of
{MERGES:,} merges; 4+4 layers, width 128, feed-forward 256, 4 heads, dropout 0.3;
{options.updates:,} updates of
{BATCH_TOKENS:,} target tokens at most, peak rate 3e-3; the mean of the last 5 checkpoints, 100
updates apart; beam 4, length penalty 0.6. The models differ in nothing else. sacreBLEU of
test_2016_flickr (1,000 lines) for the seeds {seeds}:

| model | mean | range | by seed |
|---|---|---|---|
{rows}

{options.updates:,} updates are a short training: the development loss of both models is still
falling at the end. The table shows how far each comes in equal updates, not where each ends.

Signature: `{signature}`
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, default=Path("multi30k"), help="folder to write to")
    parser.add_argument("--updates", type=int, default=1500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side, one core each")
    options = parser.parse_args()
    work = options.work.resolve()
    prepare(options.data, work, MERGES)
    jobs = [(model, seed, work, options.updates) for seed in options.seeds for model in MODELS]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda job: run(*job), jobs))
    scores: dict[str, list[float]] = {model: [] for model in MODELS}
    for (model, *_), (value, _) in zip(jobs, results):
        scores[model].append(value)
    write_section("multi30k", table(scores, results[0][1], options))


if __name__ == "__main__":
    main()
