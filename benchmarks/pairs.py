"""Two models of one size, fairseq's own transformer and ours, and how to time them side by side."""

import argparse
import multiprocessing
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Callable, NamedTuple

import torch
from fairseq.data import Dictionary
from fairseq.models import BaseFairseqModel
from fairseq.models.transformer import TransformerModel

from fairseq_rope.models import RoFormerTransformer

SIZES: dict[str, dict[str, int]] = {
    "small": {"width": 256, "ffn": 1024, "layers": 3, "heads": 4, "vocabulary": 6000},
    "base": {"width": 512, "ffn": 2048, "layers": 6, "heads": 8, "vocabulary": 32000},
}
MODELS: dict[str, type[BaseFairseqModel]] = {
    "fairseq": TransformerModel,
    "fairseq_rope": RoFormerTransformer,
}


class Vocabulary(NamedTuple):
    """All that a model asks of a task."""

    source_dictionary: Dictionary
    target_dictionary: Dictionary


def vocabulary(size: str) -> Vocabulary:
    dictionary = Dictionary()
    for number in range(SIZES[size]["vocabulary"] - len(dictionary)):
        dictionary.add_symbol(f"piece{number}")
    return Vocabulary(dictionary, dictionary)


def build(name: str, size: str, task: Any, **options: Any) -> BaseFairseqModel:
    """One of MODELS, with shared embeddings and fairseq's defaults for all else."""
    sizes = SIZES[size]
    args: dict[str, Any] = {"share_all_embeddings": True, "dropout": 0.1}
    for side in ("encoder", "decoder"):
        args[f"{side}_embed_dim"] = sizes["width"]
        args[f"{side}_ffn_embed_dim"] = sizes["ffn"]
        args[f"{side}_layers"] = sizes["layers"]
        args[f"{side}_attention_heads"] = sizes["heads"]
    torch.manual_seed(1)
    return MODELS[name].build_model(argparse.Namespace(**{**args, **options}), task)


def batch(task: Vocabulary, tokens: int, longest: int, seed: int) -> dict[str, torch.Tensor]:
    """Random sentences of similar length, source padded left and target right, as fairseq does.

    Args:
        tokens: target tokens of the batch, padding included
        longest: length of its longest sentence
    """
    draw = torch.Generator().manual_seed(seed)
    dictionary = task.source_dictionary
    rows = max(1, tokens // longest)
    shape = (rows, longest)
    source = torch.randint(dictionary.nspecial, len(dictionary), shape, generator=draw)
    target = torch.randint(dictionary.nspecial, len(dictionary), shape, generator=draw)
    short = torch.randint(0, max(1, longest // 8), (rows,), generator=draw)
    columns = torch.arange(longest)
    source[columns < short[:, None]] = dictionary.pad()
    target[columns >= longest - short[:, None]] = dictionary.pad()
    source[:, -1] = dictionary.eos()
    previous = torch.cat((torch.full((rows, 1), dictionary.eos()), target[:, :-1]), dim=1)
    return {"source": source, "previous": previous, "target": target}


def argument_parser(description: str) -> argparse.ArgumentParser:
    """The options that all benchmarks of speed share."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--size", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--pairs", type=int, default=5, help="how often both models run")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    return parser


def in_own_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call it in a fresh process, so that its peak of memory is its own; its errors are raised."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def alternate(runs: dict[str, Callable[[], int]], pairs: int, device: torch.device) -> None:
    """Run the two in turn, and print the median of the pairwise ratios of speed.

    Args:
        runs: for each name, what does one run and returns how much it did
        pairs: how many times both run; the first pair warms up and is not counted
    """
    speeds: dict[str, list[float]] = {name: [] for name in runs}
    for pair in range(pairs + 1):
        # Who runs first changes from pair to pair.
        for name, run in sorted(runs.items(), reverse=pair % 2 == 1):
            start = time.perf_counter()
            done = run()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            speeds[name].append(done / (time.perf_counter() - start))
        if pair:
            last = "  ".join(f"{name} {speeds[name][-1]:,.1f}/s" for name in runs)
            print(f"    pair {pair}/{pairs}: {last}", flush=True)
    ours, theirs = (speeds[name][1:] for name in ("fairseq_rope", "fairseq"))
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    print(
        f"    fairseq {statistics.median(theirs):,.1f}/s, fairseq_rope "
        f"{statistics.median(ours):,.1f}/s, ratio {statistics.median(ratios):.3f} "
        f"(lowest {ratios[0]:.3f}, highest {ratios[-1]:.3f}, {pairs} pairs)"
    )
