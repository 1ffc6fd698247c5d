"""fairseq models; fairseq imports this folder itself when `--user-dir` names the package."""

from .. import tasks  # noqa: F401  a checkpoint names its task, and from_pretrained asks for it
from .config import RoFormerConfig
from .roformer_transformer import RoFormerTransformer

__all__ = ["RoFormerConfig", "RoFormerTransformer"]
