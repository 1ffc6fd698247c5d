"""Which part may import which, and what the core can do without."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "fairseq_rope"

# rotation <- positions <- attention <- models; data <- tasks <- models;
# text, scoring, export <- cli
MAY_IMPORT = {
    "rotation": set(),
    "positions": {"rotation"},
    "attention": {"rotation", "positions"},
    "data": set(),
    "tasks": {"data"},
    "unpickling": set(),
    "models": {"rotation", "positions", "attention", "tasks", "unpickling"},
    "text": set(),
    "scoring": {"text"},
    "export": {"rotation", "positions", "models"},
}
TORCH_ONLY = ["rotation", "positions", "attention"]
NEEDS_FAIRSEQ = {"attention/self_attention.py", "attention/cross_attention.py"}


def modules():
    return sorted(PACKAGE.rglob("*.py"))


def imports(path):
    """The dotted names that a file imports, the package's own written out in full."""
    package = ["fairseq_rope", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) + 1 - node.level] if node.level else []
            module = [*parent, *(node.module or "").split(".")]
            yield ".".join(part for part in module if part)
            if not node.module:
                yield from (".".join([*parent, name.name]) for name in node.names)


def part_of(path):
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_points_backwards(path):
    part = part_of(path)
    used = {name.split(".")[1] for name in imports(path) if name.startswith("fairseq_rope.")}
    if part != "cli" and part != "__init__":
        assert used - {part} <= MAY_IMPORT[part]
    assert "cli" not in used or part == "cli"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_parts_that_build_on_fairseq_import_it(path):
    uses_fairseq = any(name.split(".")[0] == "fairseq" for name in imports(path))
    if part_of(path) in [*TORCH_ONLY, "text", "__init__"]:
        inside = str(path.relative_to(PACKAGE)) in NEEDS_FAIRSEQ
        assert uses_fairseq == inside


def run_without(blocked, code):
    """Run Python code in a process where the named modules cannot be imported."""
    block = f"import sys\nfor name in {blocked}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", block + code],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_core_runs_with_torch_alone():
    others = ["fairseq", "hydra", "omegaconf", "sacrebleu", "sentencepiece", "sacremoses"]
    result = run_without(
        [*others, "subword_nmt", "torchdiffeq"],
        """
import torch
from fairseq_rope.attention import KERNELS, AttentionMask
from fairseq_rope.positions import POSITIONS, token_positions
from fairseq_rope.positions.rotary import Rotary
places = token_positions(torch.tensor([[1, 5, 6, 2], [5, 6, 7, 2]]), padding_idx=1)
position = Rotary(num_layers=1, width=8)(places)[0].own
x = torch.randn(2, 3, 4, 8)
out = KERNELS["softmax"]()(x, x, x, position, position, AttentionMask(places, places), {})
print(tuple(out.values.shape))
""",
    )
    assert result.stdout.strip() == "(2, 3, 4, 8)", result.stderr


def test_the_package_itself_loads_neither_torch_nor_fairseq():
    result = run_without(
        ["torch", "fairseq"], "import fairseq_rope; print(fairseq_rope.CONFIG_DIR)"
    )
    assert result.stdout.strip().endswith("fairseq_rope/config"), result.stderr
