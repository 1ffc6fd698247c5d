"""Training speed and peak memory beside fairseq's own transformer of the same size.

    python -m benchmarks.training [--size small base] [--pairs 5] [--device cuda --dtype float16]

One run is a number of full training steps (forward, label-smoothed loss, backward, Adam) over
batches of short and long sentences; both models see the same batches in turn. Peak memory is that
of a process of its own for each model.
"""

import argparse
import resource
from typing import Callable

import torch
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss

from .pairs import (
    MODELS,
    SIZES,
    Vocabulary,
    alternate,
    argument_parser,
    batch,
    build,
    in_own_process,
    vocabulary,
)

LENGTHS = (12, 20, 28, 40, 64)


def trainer(
    name: str, size: str, task: Vocabulary, options: argparse.Namespace
) -> Callable[[], int]:
    """What trains one model over all batches and returns the number of target tokens."""
    device = torch.device(options.device)
    model = build(name, size, task).to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
    batches = [
        {key: x.to(device) for key, x in batch(task, options.tokens, longest, seed).items()}
        for seed, longest in enumerate(LENGTHS)
    ]
    dtype = getattr(torch, options.dtype)
    pad = task.target_dictionary.pad()

    def run() -> int:
        for b in batches:
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
                output = model(b["source"], None, b["previous"])
            log_probs = model.get_normalized_probs(output, log_probs=True)
            loss, _ = label_smoothed_nll_loss(log_probs, b["target"].unsqueeze(-1), 0.1, pad)
            loss.backward()
            optimizer.step()
        return sum(int(b["target"].ne(pad).sum()) for b in batches)

    return run


def peak_memory(name: str, size: str, options: argparse.Namespace) -> float:
    """Train for two rounds in this process; the most memory that it has held, in MiB."""
    run = trainer(name, size, vocabulary(size), options)
    run(), run()
    if options.device != "cpu":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--tokens", type=int, default=1024, help="target tokens of a batch")
    options = parser.parse_args()
    for size in options.size:
        print(f"training, {size} {SIZES[size]}, {options.device} {options.dtype}, tokens/s")
        peaks = {name: in_own_process(peak_memory, name, size, options) for name in MODELS}
        ours, theirs = peaks["fairseq_rope"], peaks["fairseq"]
        print(
            f"    peak memory: fairseq {theirs:,.0f} MiB, fairseq_rope {ours:,.0f} MiB, "
            f"ratio {ours / theirs:.3f}"
        )
        task = vocabulary(size)
        runs = {name: trainer(name, size, task, options) for name in MODELS}
        alternate(runs, options.pairs, torch.device(options.device))


if __name__ == "__main__":
    main()
