"""How these tests call fairseq: as a real process, or its main functions in this process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fairseq_cli.generate
import fairseq_cli.train
import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf
from reference import position_options

import fairseq_rope.models  # noqa: F401  registers the architectures

ROOT = Path(fairseq_rope.__file__).parent.parent
PLUGIN = ROOT / "fairseq_rope"
RECORD = Path(__file__).parent / "record.py"


PARSERS = {
    "train": options.get_training_parser,
    "generate": options.get_generation_parser,
    "interactive": options.get_interactive_generation_parser,
    "validate": options.get_validation_parser,
}
TINY = """--encoder-embed-dim 32 --decoder-embed-dim 32 --encoder-ffn-embed-dim 64
    --decoder-ffn-embed-dim 64 --encoder-layers 2 --decoder-layers 2"""
# Without a multiple of 1 fairseq drops the last batch where its size is no multiple of 8. With a
# buffer and no workers its reading thread may still be in torch when a process ends before its
# epoch does, and that ends the process with an abort.
OPTIMISATION = """--optimizer adam --lr 0.01 --lr-scheduler inverse_sqrt --warmup-updates 10
    --batch-size 75 --cpu --log-format json --log-interval 1000 --num-workers 0 --data-buffer-size 0
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1
    --required-batch-size-multiple 1"""

GENERATION = """--cpu --num-workers 0 --batch-size 20 --required-batch-size-multiple 1 --beam 3
    --max-len-a 0 --max-len-b 12"""


def words(*arguments):
    """A command line: a str may hold several words, anything else is one."""
    return [w for a in arguments for w in (a.split() if isinstance(a, str) else [str(a)])]


def program(command):
    """The words that start `fairseq-train` or another of fairseq's commands."""
    script = Path(sys.executable).parent / f"fairseq-{command}"
    if script.exists():
        return [script]
    return [sys.executable, "-m", f"fairseq_cli.{command.replace('-', '_')}"]


def start(command, *arguments, cwd=ROOT, path=None, **options):
    """Start a command in a process of its own; `command` is a name or a list of words.

    Args:
        path: PYTHONPATH of the process
    """
    command = program(command) if isinstance(command, str) else command
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(path or "")}
    return subprocess.Popen(
        words(*command, *arguments),
        cwd=cwd,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **options,
    )


def finish(process, text="", fails=False):
    """Give a process its last input and return all it printed."""
    printed, _ = process.communicate(text, timeout=120)
    assert (process.returncode != 0) == fails, printed
    return printed


def run(command, *arguments, text="", fails=False, **where):
    """Run a command in a process of its own and return all it printed."""
    return finish(start(command, *arguments, **where), text, fails)


def parse(command, *arguments):
    """fairseq's configuration for a command line."""
    namespace = options.parse_args_and_arch(PARSERS[command](), words(*arguments))
    return convert_namespace_to_omegaconf(namespace)


def position(name):
    """The words of a command line that choose a position scheme, as reference.position_options."""
    return " ".join(f"--{k.replace('_', '-')} {v}" for k, v in position_options(name).items())


def train(data, save_dir, *arguments):
    """fairseq-train in this process, on a tiny model unless the arguments say otherwise."""
    vars(checkpoint_utils.save_checkpoint).clear()  # else the best loss of an earlier call stays
    fairseq_cli.train.main(parse("train", *training(data, save_dir, *arguments)))


def training(data, save_dir, *arguments):
    """The command line of a tiny training; later arguments win."""
    arch = "" if "--arch" in words(*arguments) else "--arch roformer_transformer_tiny"
    return words(data, "--save-dir", save_dir, arch, TINY, OPTIMISATION, *arguments)


def generate(data, checkpoint, results, *arguments):
    """fairseq-generate in this process -> what it writes."""
    line = [data, "--path", checkpoint, "--results-path", results, GENERATION]
    fairseq_cli.generate.main(parse("generate", *line, *arguments))
    return next(Path(results).glob("generate-*.txt")).read_text("utf-8")


def build(config):
    """The model that fairseq builds from a configuration."""
    return tasks.setup_task(config.task).build_model(config.model)


def save(config, model, path):
    """Write a checkpoint as training does, without its optimiser -> the path."""
    history = {"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 0}
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(config),
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {"train_iterator": None},
    }
    torch.save(state, path)
    return path


def load(checkpoint, **overrides):
    """The model of a checkpoint, as generation loads it."""
    (model,), _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], arg_overrides=overrides)
    return model.eval()


def weights(checkpoint):
    """The tensors of a checkpoint."""
    return checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["model"]


def hypotheses(printed):
    """{sentence number: [(score, text), ...]} from the H- lines of generation, best first."""
    found = {}
    for line in printed.splitlines():
        if line.startswith("H-"):
            number, score, *text = line[2:].split("\t")
            found.setdefault(int(number), []).append((float(score), "".join(text)))
    return found


def logged(printed, tag):
    """The JSON lines that training logs under a tag, "train" or "valid"."""
    lines = (line.partition(f"| {tag} | ")[2] for line in printed.splitlines())
    return [json.loads(line) for line in lines if line.startswith("{")]
