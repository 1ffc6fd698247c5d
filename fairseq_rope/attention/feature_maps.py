"""Feature maps of linear attention: phi(q)^T phi(k) stands where softmax has exp(q^T k).

A map treats each token by itself, so that padding, other tokens and the cache change nothing.
A factor that belongs to one query is in the numerator and in the denominator and cancels, so
queries may be normalised. A factor that belongs to one key does not cancel: it is the key's weight.

FEATURE_MAPS is the one list of maps: the command line's choices and the error message's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LIMIT = (
    32.0  # float32 holds sums over millions of exp(32), and the square of 1 / exp(-32) / EPSILON
)
EPSILON = 1e-4


class FeatureMap(nn.Module):
    """Makes D features, none negative, of a head's D numbers.

    Args:
        head_dim: D
    """

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim

    def query(self, q: Tensor) -> Tensor:
        """(..., D) -> (..., D), but for a factor of each query, which cancels."""
        return self.key(q)

    def key(self, k: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        raise NotImplementedError


class Elu(FeatureMap):
    """elu(x) + 1 (Katharopoulos et al. 2020, arXiv 2006.16236, eq. 7)."""

    def key(self, k: Tensor) -> Tensor:
        return F.elu(k).add_(1)


class Relu(FeatureMap):
    """max(x, 0) + 0.1, the ReLU features of Performer with a larger constant.

    Without a constant a query and its keys may have no feature in common, and their denominator is
    zero. Performer's code adds 0.001. The numerator, which is turned, need not be small where the
    denominator is, and so the constant is near what elu(x) + 1 leaves of negative numbers.
    """

    def key(self, k: Tensor) -> Tensor:
        return F.relu(k) + 0.1


class Exp(FeatureMap):
    """softmax(q) and exp(k) (Shen et al. 2018, arXiv 1812.01243, as RoFormer writes them).

    Softmax over a query's own features is exp(q) but for a factor. EPSILON is added to it, as in
    Performer's code: it bounds the output where the keys have next to nothing of what a query
    looks for. The numbers of a key are clamped to +-LIMIT, and pass no gradient beyond; to
    subtract a maximum over keys would make a token depend on those behind it.
    """

    def query(self, q: Tensor) -> Tensor:
        return torch.softmax(q, dim=-1) + EPSILON

    def key(self, k: Tensor) -> Tensor:
        return torch.exp(k.clamp(-LIMIT, LIMIT))


class Favor(Exp):
    """Positive orthogonal random features (Performer, Choromanski et al. 2021, arXiv 2009.14794).

    phi(x)_i = exp(w_i^T x - |x|^2 / 2) with x = k / D^(1/4) (lemma 1), so that the expectation of
    phi(q)^T phi(k) is exp(q^T k / sqrt(D)), the weight of softmax attention. A query needs no
    second term, which is a factor of its own. Performer's code subtracts from the exponents of
    keys their maximum over all keys; here they are clamped as those of Exp.
    """

    projection: Tensor

    def __init__(self, head_dim: int) -> None:
        super().__init__(head_dim)
        # Weights are trained for one draw, so it is saved with them. Their own draw stays that of
        # the other maps.
        with torch.random.fork_rng(devices=[]):
            self.register_buffer("projection", orthogonal_gaussian(head_dim))

    def query(self, q: Tensor) -> Tensor:
        return super().query(self._project(q))

    def key(self, k: Tensor) -> Tensor:
        half_square = k.square().sum(dim=-1, keepdim=True) * (0.5 * self.head_dim**-0.5)
        return super().key(self._project(k) - half_square)

    def _project(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., D), w_i^T x / D^(1/4)."""
        return x @ (self.projection.to(x.dtype).t() * self.head_dim**-0.25)


def orthogonal_gaussian(size: int) -> Tensor:
    """(size, size): orthogonal rows, each distributed as `size` normal numbers (Performer 2.4)."""
    directions, upper = torch.linalg.qr(torch.randn(size, size))
    directions = directions * upper.diagonal().sign()  # without which they are not uniform
    return directions * torch.randn(size, size).norm(dim=1, keepdim=True)


FEATURE_MAPS: dict[str, type[FeatureMap]] = {
    "elu": Elu,
    "relu": Relu,
    "exp": Exp,
    "favor": Favor,
}
