"""Attention: kernels compute it, SelfAttention and CrossAttention place it in a Transformer layer.

KERNELS is the one list of kernels: the command line's choices and the error message's. The
kernels need torch alone, so the two modules built on fairseq are imported by their own names.
"""

from .kernel import AttentionKernel
from .mask import AttentionMask
from .softmax import SoftmaxKernel

KERNELS: dict[str, type[AttentionKernel]] = {"softmax": SoftmaxKernel}

__all__ = ["KERNELS", "AttentionKernel", "AttentionMask", "SoftmaxKernel"]
