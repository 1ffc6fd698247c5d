"""Rotary and other position encodings for fairseq's translation Transformer.

Give this folder to fairseq as ``--user-dir fairseq_rope``; fairseq then imports ``models``,
which registers the architectures. Importing the package itself loads neither torch nor fairseq.
"""

from pathlib import Path

__version__ = "0.1.0"

CONFIG_DIR = str(Path(__file__).parent / "config")
"""Folder of the YAML files, for ``fairseq-hydra-train --config-dir``."""
