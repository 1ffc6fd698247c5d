"""Throughput of the text steps beside the public tools that they stand for.

    python -m benchmarks.text_steps [--lines 200000] [--size 32000] [--pairs 5]

Each side of the corpus is normalised, tokenised and segmented by a joint BPE, once with
`fairseq-rope`, once with the commands of sacremoses and subword-nmt: the former in one process,
in which it is faster than in two or more, the latter in as many as there are cores. The two
alternate, step by step; the ratios are of wall-clock times.
"""

import argparse
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from zlib import crc32

from fairseq_rope.text.tokenise import Detokeniser

SAMPLE = Path(__file__).parents[2] / "shared" / "data" / "wmt_sample"
CORES = len(os.sched_getaffinity(0))

OURS = f"{sys.executable} -m fairseq_rope.cli"
MOSES = f"{Path(sys.executable).parent / 'sacremoses'} -q"
SUBWORD = f"{Path(sys.executable).parent / 'subword-nmt'}"

STEPS = {
    "normalise": (
        OURS + " normalise --language {0} raw.{0} ours.normal.{0}",
        MOSES + " -l {0} normalize < raw.{0} > theirs.normal.{0}",
    ),
    "tokenise": (
        OURS + " tokenise --language {0} --split-hyphens ours.normal.{0} ours.tokens.{0}",
        MOSES + " -l {0} tokenize -a < theirs.normal.{0} > theirs.tokens.{0}",
    ),
    "learn bpe": (
        OURS + " segment learn --segmenter subword-nmt --size {size} --model ours.codes"
        " ours.tokens.{source} ours.tokens.{target}"
        " --vocabularies ours.vocabulary.{source} ours.vocabulary.{target}",
        SUBWORD + " learn-joint-bpe-and-vocab --num-workers {cores} -s {size} -o theirs.codes"
        " --input theirs.tokens.{source} theirs.tokens.{target}"
        " --write-vocabulary theirs.vocabulary.{source} theirs.vocabulary.{target}",
    ),
    "apply bpe": (
        OURS + " segment apply --segmenter subword-nmt --model ours.codes"
        " --vocabulary ours.vocabulary.{0} ours.tokens.{0} ours.pieces.{0}",
        SUBWORD
        + " apply-bpe --num-workers {cores} -c theirs.codes --vocabulary theirs.vocabulary.{0}"
        " --vocabulary-threshold 50 -i theirs.tokens.{0} -o theirs.pieces.{0}",
    ),
}
"""Our command and theirs. A command with {0} runs once for each language."""


def write_corpus(folder: Path, languages: tuple[str, str], lines: int) -> None:
    """Repeat the sample until there are enough lines, no two of them alike.

    Every copy changes another twentieth of the words, so that the number of distinct words grows
    with the text as it does in nature, and no cache profits from the repetition.
    """
    for language in languages:
        detokenise = Detokeniser(language)
        with gzip.open(
            SAMPLE / f"train.{language}.gz", "rt", encoding="utf-8", newline="\n"
        ) as file:
            sample = [detokenise(line).split(" ") for line in file]
        with open(folder / f"raw.{language}", "w", encoding="utf-8", newline="\n") as output:
            for number in range(lines):
                copy, index = divmod(number, len(sample))
                words = [vary(word, copy) for word in sample[index]]
                output.write(f"{' '.join(words)} ({number})\n")


def vary(word: str, copy: int) -> str:
    changed = copy and word.isalpha() and crc32(word.encode()) % 20 == copy % 20
    return f"{word}{copy}x" if changed else word


def seconds(command: str, languages: tuple[str, str], size: int, folder: Path) -> float:
    """Run a command, for each language if it is for one, and return the time it takes."""
    source, target = languages
    names = {"source": source, "target": target, "size": size, "cores": CORES}
    runs = [command.format(language, **names) for language in languages]
    start = time.perf_counter()
    for run in dict.fromkeys(runs):
        subprocess.run(run, shell=True, check=True, cwd=folder, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--size", type=int, default=32_000, help="merges")
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    languages = ("en", "de")
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in [*STEPS, "all"]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder, languages, args.lines)
        for pair in range(args.pairs):
            for step, commands in STEPS.items():
                # Each goes first in every other pair.
                order = (0, 1) if pair % 2 == 0 else (1, 0)
                took = {i: seconds(commands[i], languages, args.size, folder) for i in order}
                times[step].append((took[0], took[1]))
                print(f"pair {pair + 1} {step}: {took[0]:.1f} s, {took[1]:.1f} s", flush=True)
            times["all"].append(tuple(map(sum, zip(*(times[step][-1] for step in STEPS)))))
    print(f"{args.lines:,} line pairs, {args.pairs} pairs of runs, {CORES} cores, medians")
    for step, pairs in times.items():
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"{step:<10} {ours:8.1f} s  public tools {theirs:8.1f} s  {ratio:.2f} times as fast")


if __name__ == "__main__":
    main()
