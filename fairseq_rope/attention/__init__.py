"""Attention: kernels compute it, SelfAttention and CrossAttention place it in a Transformer layer.

KERNELS is the one list of kernels: the command line's choices and the error message's. The
kernels need torch alone, so the two modules built on fairseq are imported by their own names.
"""

from .feature_maps import FEATURE_MAPS
from .kernel import AttentionKernel
from .linear import LinearKernel
from .mask import AttentionMask
from .softmax import SoftmaxKernel

KERNELS: dict[str, type[AttentionKernel]] = {
    "softmax": SoftmaxKernel,
    "linear": LinearKernel,
}

__all__ = [
    "FEATURE_MAPS",
    "KERNELS",
    "AttentionKernel",
    "AttentionMask",
    "LinearKernel",
    "SoftmaxKernel",
]
