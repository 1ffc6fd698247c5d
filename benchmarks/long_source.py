"""Time and peak memory of one long sentence pair, beside fairseq's own transformer.

    python -m benchmarks.long_source [--tokens 4096] [--device cuda --dtype float16]

One training step (forward, backward) on a source and target of so many tokens, then a translation
of the same source to 32 tokens at beam 4. Each model runs in a process of its own.
"""

import argparse
import resource
import time

import torch
from fairseq.sequence_generator import SequenceGenerator

from .pairs import MODELS, batch, build, in_own_process, vocabulary

SIZE = "small"


def peak(device: torch.device) -> float:
    """The most memory that this process has held so far, in MiB; on a GPU that of the GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, options: argparse.Namespace) -> None:
    task = vocabulary(SIZE)
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    limits = {f"max_{side}_positions": options.tokens for side in ("source", "target")}
    model = build(name, SIZE, task, **limits).to(device, dtype)
    pair = {key: x.to(device) for key, x in batch(task, 1, options.tokens, seed=1).items()}
    start, before = time.perf_counter(), peak(device)
    model(pair["source"], None, pair["previous"])[0].float().logsumexp(-1).sum().backward()
    trained, after = time.perf_counter() - start, peak(device)
    model.eval()
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=4, max_len_b=32)
    generator.max_len_a = 0
    start = time.perf_counter()
    with torch.no_grad():
        generator.generate([model], {"net_input": {"src_tokens": pair["source"]}})
    print(
        f"    {name}: training step {trained:.1f} s, {after:,.0f} MiB ({after - before:,.0f} more "
        f"than before); translation {time.perf_counter() - start:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    options = parser.parse_args()
    print(f"a sentence pair of {options.tokens} tokens, {SIZE}, {options.device} {options.dtype}")
    for name in MODELS:
        in_own_process(measure, name, options)


if __name__ == "__main__":
    main()
