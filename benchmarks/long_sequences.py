"""Time of softmax and of linear attention as the sequence grows, in training and in decoding.

    python -m benchmarks.long_sequences [--tokens 1024 ... 16384] [--pairs 5] [--plot FILE]
        [--device cuda --dtype float16]

One layer of self-attention (projections, rotation, kernel, output), 256 wide with 4 heads, on one
sequence of random vectors: forward and backward, as in an encoder and, causal, as in a decoder.
Then one step after the other from the cache, four hypotheses, up to 4,000 tokens. The two
attentions take turns; times are medians.
"""

import argparse
import statistics
import time
from importlib.util import find_spec
from typing import Any, Callable

import numpy
import torch

from fairseq_rope.attention import AttentionKernel, AttentionMask, LinearKernel, SoftmaxKernel
from fairseq_rope.attention.feature_maps import FEATURE_MAPS
from fairseq_rope.attention.self_attention import SelfAttention
from fairseq_rope.positions.rotary import Rotary

WIDTH, HEADS, HYPOTHESES = 256, 4, 4
HEAD_DIM = WIDTH // HEADS
STEPS, WINDOW = (100, 500, 1000, 2000, 4000), 50
Curves = dict[str, list[float]]


def layers(options: argparse.Namespace) -> dict[str, SelfAttention]:
    """One layer of each attention."""
    kernels: dict[str, AttentionKernel] = {
        "softmax": SoftmaxKernel(),
        "linear": LinearKernel(FEATURE_MAPS[options.feature_map](HEAD_DIM)),
    }
    place = {"device": options.device, "dtype": getattr(torch, options.dtype)}
    return {
        name: SelfAttention(WIDTH, HEADS, kernel).to(**place) for name, kernel in kernels.items()
    }


def training_step(layer: SelfAttention, tokens: int, causal: bool) -> Callable[[], None]:
    """What runs the layer forward and backward once."""
    like = layer.q_proj.weight
    x = torch.randn(1, tokens, WIDTH).to(like).requires_grad_()
    places = torch.arange(tokens, device=like.device)[None]
    mask = AttentionMask(places, places, causal=causal)
    scheme = Rotary(1, HEAD_DIM)

    def run() -> None:
        layer(x, scheme(places)[0].own, mask).float().sum().backward()

    return run


class Decoding:
    """Decodes a token at a time: each call is one step."""

    def __init__(self, layer: SelfAttention) -> None:
        self.layer, self.scheme, self.cache = layer.eval(), Rotary(1, HEAD_DIM), {}
        self.x = torch.randn(HYPOTHESES, 1, WIDTH).to(layer.q_proj.weight)
        self.places = torch.arange(max(STEPS), device=self.x.device)[None]
        self.steps = 0

    @torch.no_grad()
    def __call__(self) -> None:
        last = self.places[:, self.steps : self.steps + 1]
        self.steps += 1
        mask = AttentionMask(last, self.places[:, : self.steps], causal=True)
        self.layer(self.x, self.scheme(last)[0].own, mask, self.cache)

    def held(self) -> float:
        """MiB of the layer's state."""
        (state,) = self.cache.values()
        return sum(x.nbytes for x in state.values() if torch.is_tensor(x)) / 2**20


def seconds(run: Callable[[], Any], device: str) -> float:
    start = time.perf_counter()
    run()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return time.perf_counter() - start


def compare_training(options: argparse.Namespace, causal: bool) -> Curves:
    """The table of one kind of pass, forward and backward; seconds for each length."""
    medians: Curves = {"softmax": [], "linear": []}
    for tokens in options.tokens:
        runs = {n: training_step(x, tokens, causal) for n, x in layers(options).items()}
        times: Curves = {name: [] for name in runs}
        for pair in range(options.pairs + 1):
            # Who runs first changes from pair to pair; the first pair warms up.
            for name, run in sorted(runs.items(), reverse=pair % 2 == 1):
                times[name].append(seconds(run, options.device))
        times = {name: measured[1:] for name, measured in times.items()}
        for name, curve in medians.items():
            curve.append(statistics.median(times[name]))
        ratios = sorted(a / b for a, b in zip(times["softmax"], times["linear"]))
        print(
            f"    {tokens:6,} {medians['softmax'][-1]:9.3f} s {medians['linear'][-1]:9.3f} s "
            f"{statistics.median(ratios):7.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})",
            flush=True,
        )
    return medians


def exponent(tokens: list[int], curve: list[float]) -> float:
    """The slope of log(time) over log(tokens), by least squares."""
    return float(numpy.polyfit(numpy.log(tokens), numpy.log(curve), 1)[0])


def compare_decoding(options: argparse.Namespace) -> None:
    """The table of steps: the time of those up to each, and the memory of the state behind it."""
    runs = [Decoding(layer) for layer in layers(options).values()]
    for before, until in zip((0, *STEPS), STEPS):
        cells = []
        for step in runs:
            times = [seconds(step, options.device) for _ in range(before, until)]
            took = 1e3 * statistics.median(times[-WINDOW:])
            cells.append(f"{took:9.3f} ms {step.held():9.3f} MiB")
        print(f"    {until:6,} {'  '.join(cells)}", flush=True)


def draw(path: str, tokens: list[int], curves: dict[str, Curves]) -> None:
    """Both axes logarithmic, one panel for each kind of pass."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6))
    for panel, (title, medians) in enumerate(curves.items(), 1):
        axes = figure.add_subplot(1, len(curves), panel)
        for name, curve in medians.items():
            label = f"{name}, exponent {exponent(tokens, curve):.2f}"
            axes.loglog(tokens, curve, "o-", label=label)
        axes.set(title=title, xlabel="tokens", ylabel="seconds, forward and backward")
        axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    lengths = [1024, 2048, 4096, 8192, 16384]
    parser.add_argument("--tokens", type=int, nargs="+", default=lengths)
    parser.add_argument("--pairs", type=int, default=5, help="how often both run")
    parser.add_argument("--feature-map", choices=FEATURE_MAPS, default="elu")
    parser.add_argument("--plot", metavar="FILE", help="draw the times (needs matplotlib)")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16", "float16"], default="float32")
    options = parser.parse_args()
    if options.plot and find_spec("matplotlib") is None:
        parser.error("--plot needs matplotlib: pip install matplotlib")
    print(f"one layer, {WIDTH} wide, {HEADS} heads, {options.device} {options.dtype}")
    curves = {}
    for title, causal in (("every token sees all", False), ("causal", True)):
        print(f"  {title}: tokens, softmax, linear, softmax / linear")
        curves[title] = compare_training(options, causal)
        slopes = (f"{n} {exponent(options.tokens, c):.2f}" for n, c in curves[title].items())
        print(f"    time grows with the length to the power of: {', '.join(slopes)}", flush=True)
    if options.plot:
        draw(options.plot, options.tokens, curves)
    print(f"  decoding, {HYPOTHESES} hypotheses: step, softmax, linear (time and state)")
    compare_decoding(options)


if __name__ == "__main__":
    main()
