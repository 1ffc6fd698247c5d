"""RoFormer and fairseq's transformer on Multi30k English-German, from raw text to sacreBLEU.

    python -m benchmarks.multi30k DATA [--work multi30k] [--updates 1500] [--seeds 1 2 3] [--jobs 2]

DATA holds train, val and test_2016_flickr as NAME.en.gz and NAME.de.gz. Every run goes through the
scripts of examples/wmt14_en_de, prepare.sh once, then train.sh, average.sh, translate.sh and
score.sh, and differs in the architecture and the seed alone. The table goes to docs/results.md. A
run that is done is not done again.
"""

import argparse
import io
import os
import re
import shlex
import statistics
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.sax.saxutils import escape

from fairseq_rope.text.lines import read_lines

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "examples" / "wmt14_en_de"
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


def write_mirror(data: Path, mirror: Path) -> None:
    """Pack the text as the five archives that prepare.sh reads."""
    text = {
        (part, language): list(read_lines(data / f"{part}.{language}.gz"))
        for part in ("train", "val", "test_2016_flickr")
        for language in ("en", "de")
    }
    mirror.mkdir(parents=True, exist_ok=True)
    corpora = {
        "training-parallel-europarl-v7.tgz": ("training/europarl-v7.de-en", slice(0, 10000)),
        "training-parallel-commoncrawl.tgz": ("commoncrawl.de-en", slice(10000, 20000)),
        "training-parallel-nc-v9.tgz": ("training/news-commentary-v9.de-en", slice(20000, None)),
    }
    for archive, (name, lines) in corpora.items():
        sides = {
            f"{name}.{language}": "".join(f"{line}\n" for line in text["train", language][lines])
            for language in ("en", "de")
        }
        write_archive(mirror / archive, sides)
    for archive, part, name in (
        ("dev.tgz", "val", "dev/newstest2013-{}"),
        ("test-full.tgz", "test_2016_flickr", "test-full/newstest2014-deen-{}"),
    ):
        sides = {
            name.format(f"{kind}.{language}.sgm"): sgm(kind, language, text[part, language])
            for kind, language in (("src", "en"), ("ref", "de"))
        }
        write_archive(mirror / archive, sides)


def write_archive(path: Path, members: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            content = text.encode()
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))


def sgm(kind: str, language: str, lines: list[str]) -> str:
    name = "srclang" if kind == "src" else "trglang"
    segments = "\n".join(f"<seg>{escape(line)}</seg>" for line in lines)
    return f'<{kind}set {name}="{language}">\n<doc>\n{segments}\n</doc>\n</{kind}set>\n'


def run_script(name: str, log: Path, work: Path, *arguments: str, **settings: str) -> str:
    """Run one of the example's scripts, one thread a process, and return what it printed."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        **os.environ,
        **{"PATH": programs, "OMP_NUM_THREADS": "1", "WORK": str(work), "GPUS": "0"},
        **settings,
    }
    result = subprocess.run(
        [SCRIPTS / name, *arguments], env=environment, capture_output=True, text=True
    )
    with log.open("a", encoding="utf-8") as file:
        file.write(result.stdout + result.stderr)
    if result.returncode:
        raise SystemExit(f"{name} failed; its output is in {log}")
    return result.stdout


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
    """The results as a Markdown page."""
    seeds = ", ".join(map(str, options.seeds))
    rows = "\n".join(
        f"| {model} | {statistics.mean(values):.2f} | {min(values):.2f} to {max(values):.2f} | "
        f"{', '.join(f'{value:.2f}' for value in values)} |"
        for model, values in scores.items()
    )
    return f"""# Results

## Multi30k, English to German

Made by `python -m benchmarks.multi30k DATA --updates {options.updates}`, from raw text with the
scripts of [examples/wmt14_en_de](../examples/wmt14_en_de): Moses tokens, joint BPE of 6,000 merges;
4+4 layers, width 128, feed-forward 256, 4 heads, dropout 0.3; {options.updates:,} updates of
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
    mirror = work / "mirror"
    if not mirror.exists():
        write_mirror(options.data, mirror)
    run_script(
        *("prepare.sh", work / "prepare.log", work),
        WMT_SOURCE=str(mirror),
        SIZE="6000",
        THRESHOLD="1",
    )
    jobs = [(model, seed, work, options.updates) for seed in options.seeds for model in MODELS]
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda job: run(*job), jobs))
    scores: dict[str, list[float]] = {model: [] for model in MODELS}
    for (model, *_), (value, _) in zip(jobs, results):
        scores[model].append(value)
    (ROOT / "docs" / "results.md").write_text(
        table(scores, results[0][1], options), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
