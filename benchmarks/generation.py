"""Translation speed beside fairseq's own transformer of the same size, at beam 4.

    python -m benchmarks.generation [--size small base] [--pairs 5] [--device cuda --dtype float16]

Both models are untrained and search to the same length, so that they do the same work. The search
is fairseq's SequenceGenerator, as fairseq-generate runs it.
"""

import argparse
from typing import Any, Callable

import torch
from fairseq.sequence_generator import SequenceGenerator

from .pairs import (
    MODELS,
    SIZES,
    Vocabulary,
    alternate,
    argument_parser,
    batch,
    build,
    vocabulary,
)


def translator(
    name: str, size: str, task: Vocabulary, options: argparse.Namespace
) -> Callable[[], int]:
    """What translates one batch with one model and returns the number of sentences."""
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    model = build(name, size, task).to(device, dtype).eval()
    model.make_generation_fast_(need_attn=False)
    length = options.length
    generator = SequenceGenerator(
        [model], task.target_dictionary, beam_size=4, max_len_a=0, max_len_b=length, min_len=length
    )
    source = batch(task, options.sentences * length, length, seed=1)["source"].to(device)
    lengths = source.ne(task.source_dictionary.pad()).sum(dim=1)
    sample: dict[str, Any] = {"net_input": {"src_tokens": source, "src_lengths": lengths}}

    def run() -> int:
        with torch.no_grad():
            return len(generator.generate([model], sample))

    return run


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=32, help="sentences of a batch")
    parser.add_argument("--length", type=int, default=25, help="tokens of a sentence")
    options = parser.parse_args()
    for size in options.size:
        print(f"translation, {size} {SIZES[size]}, {options.device} {options.dtype}, sentences/s")
        task = vocabulary(size)
        runs = {name: translator(name, size, task, options) for name in MODELS}
        alternate(runs, options.pairs, torch.device(options.device))


if __name__ == "__main__":
    main()
