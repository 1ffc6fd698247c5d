"""fairseq models; fairseq imports this folder itself when `--user-dir` names the package."""

from .config import RoFormerConfig
from .roformer_transformer import RoFormerTransformer

__all__ = ["RoFormerConfig", "RoFormerTransformer"]
