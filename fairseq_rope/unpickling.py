"""What torch's `weights_only=True` may read of a checkpoint besides tensors."""

from argparse import Namespace

import numpy as np
import torch


def allow_plain_values() -> None:
    """Let the values through that fairseq stores; all of these types run nothing.

    fairseq's older models and optimisers keep their options in a Namespace, and training with
    --eval-bleu leaves arrays of numpy in every checkpoint.
    """
    rebuild_array, rebuild_number = (value.__reduce__()[0] for value in (np.zeros(1), np.float64()))
    types = [Namespace, np.ndarray, np.dtype, type(np.dtype("int64")), type(np.dtype("float64"))]
    torch.serialization.add_safe_globals([*types, rebuild_array, rebuild_number])
