"""Training examples of one sentence pair or several, drawn anew for every epoch."""

import numpy as np
import torch
from fairseq.data import LanguagePairDataset
from torch import Tensor

ORDERS = ("random", "document")


class ConcatenatedPairs(LanguagePairDataset):
    """Sentence pairs, some of which are followed by others within the same example.

    Example i is always pair i, and in a share of the examples further pairs after it: their source
    behind its source and their target behind its target, with one end of sentence at the very end.
    Which pairs depends on seed and epoch alone, so that all workers and GPUs, and a training that
    is resumed, see the same. Sizes are those of the whole examples.

    Args:
        pairs: what is joined; every sentence ends in eos
        share: of the examples that have more than one pair, 0 to 1
        sentences: most pairs in one example; each number from 2 on is drawn equally often
        order: "random" partners, or the pairs that follow in the "document", the order of the data
        longest: source and target tokens that an example may have; if joined it were longer, it
            stays a single pair
        seed: of the draw
    """

    def __init__(
        self,
        pairs: LanguagePairDataset,
        share: float,
        sentences: int,
        order: str,
        longest: tuple[int, int],
        seed: int,
    ) -> None:
        super().__init__(
            pairs.src,
            pairs.src_sizes,
            pairs.src_dict,
            pairs.tgt,
            pairs.tgt_sizes,
            pairs.tgt_dict,
            left_pad_source=pairs.left_pad_source,
            left_pad_target=pairs.left_pad_target,
            shuffle=pairs.shuffle,
            pad_to_multiple=pairs.pad_to_multiple,
        )
        self.single_sizes = self.sizes
        self.share = share
        self.sentences = sentences
        self.order = order
        self.longest = longest
        self.seed = seed
        self.set_epoch(1)

    @property
    def can_reuse_epoch_itr_across_epochs(self) -> bool:
        return False  # batches are made by size, and sizes change

    def set_epoch(self, epoch: int) -> None:
        """Draw which pairs follow which in this epoch."""
        super().set_epoch(epoch)
        others, follow = self._draw(np.random.default_rng((self.seed, epoch)))
        sizes = self._joined_sizes(others, follow)
        follow[(sizes > self.longest).any(axis=1)] = False
        self.sizes = self._joined_sizes(others, follow)
        self.src_sizes, self.tgt_sizes = self.sizes.T
        self.others = np.where(follow, others, -1)

    def _draw(self, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """For each example the pairs that may follow, and whether they do: both (N, most - 1)."""
        size, most = len(self), self.sentences - 1
        joined = draw.random(size) < self.share
        wanted = np.where(joined, draw.integers(1, most, size, endpoint=True), 0)
        index, steps = np.arange(size)[:, None], np.arange(1, most + 1)
        follow = steps <= wanted[:, None]
        if self.order == "document":
            others = np.minimum(index + steps, size - 1)
            return others, follow & (index + steps < size)
        # Any pair but the example's own.
        return (index + draw.integers(1, max(size, 2), (size, most))) % size, follow

    def _joined_sizes(self, others: np.ndarray, follow: np.ndarray) -> np.ndarray:
        """(N, 2) source and target tokens; of several pairs, each but the last loses its eos."""
        further = (self.single_sizes[others] - 1) * follow[:, :, None]
        return self.single_sizes + further.sum(axis=1)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        example = super().__getitem__(index)
        indices = [index, *(int(other) for other in self.others[index] if other >= 0)]
        example["source"] = _join([self.src[i] for i in indices])
        example["target"] = _join([self.tgt[i] for i in indices])
        return example

    def prefetch(self, indices: list[int]) -> None:
        others = self.others[indices]
        super().prefetch([*indices, *others[others >= 0].tolist()])


def _join(sentences: list[Tensor]) -> Tensor:
    return torch.cat([*(tokens[:-1] for tokens in sentences[:-1]), sentences[-1]])
