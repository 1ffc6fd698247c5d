"""Repeated sentence pairs."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from hashlib import blake2b

import numpy as np

from .filter import filter_pairs
from .lines import PathLike, read_pairs, require_files
from .report import Report


def first_occurrences(pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Return one bool for each pair: whether no equal pair came before it.

    Pairs are compared by 64-bit digests, 8 bytes a pair: among 5 million distinct pairs two have
    the same digest with a probability below one in a million.
    """
    digests = array("Q")
    for source, target in pairs:
        raw = f"{source}\n{target}".encode("utf-8", "surrogateescape")
        digest = blake2b(raw, digest_size=8).digest()
        digests.append(int.from_bytes(digest, "little"))
    _, first = np.unique(np.frombuffer(digests, np.uint64), return_index=True)
    occurs_first = np.zeros(len(digests), bool)
    occurs_first[first] = True
    return occurs_first


def drop_duplicates(step: str, inputs: Sequence[PathLike], outputs: Sequence[PathLike]) -> Report:
    """Write every distinct line pair once, where it first stands; reads the files twice."""
    require_files(inputs)
    occurs_first = iter(first_occurrences(read_pairs(inputs)))
    return filter_pairs(
        step,
        lambda source, target: None if next(occurs_first) else "duplicate",
        read_pairs(inputs),
        outputs,
    )
