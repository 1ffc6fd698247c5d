"""Learning the merges of byte-pair encoding (Sennrich et al., ACL 2016, algorithm 1)."""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush

Pair = tuple[str, str]

END_OF_WORD = "</w>"


def learn_merges(words: Counter[str], least: int = 2) -> Iterator[Pair]:
    """Yield the most frequent pair of adjacent symbols, merge it everywhere, and so on.

    A word's symbols are at first its characters, the last one marked as the end of the word. Of
    equally frequent pairs the last in alphabetical order comes first, as in subword-nmt. Ends when
    no pair occurs ``least`` times. A merge costs time only where its pair stands.
    """
    split = [(*word[:-1], word[-1] + END_OF_WORD) for word in words]
    frequencies = list(words.values())
    counts: Counter[Pair] = Counter()
    places: defaultdict[Pair, list[int]] = defaultdict(list)
    for index, symbols in enumerate(split):
        for pair in zip(symbols, symbols[1:]):
            counts[pair] += frequencies[index]
            places[pair].append(index)
    queue = _PairQueue(counts)
    queue.add(counts)
    while (best := queue.pop()) and counts[best] >= least:
        yield best
        before: dict[Pair, int] = {}
        # A word is merged once, however often the pair stands in it.
        for index in dict.fromkeys(places.pop(best)):
            old, new = split[index], merge(split[index], best)
            split[index] = new
            for symbols, sign in ((old, -1), (new, 1)):
                for pair in zip(symbols, symbols[1:]):
                    before.setdefault(pair, counts[pair])
                    counts[pair] += sign * frequencies[index]
            for pair in set(zip(new, new[1:])).difference(zip(old, old[1:])):
                places[pair].append(index)
        queue.add(pair for pair, count in before.items() if counts[pair] != count)


def merge(symbols: tuple[str, ...], pair: Pair) -> tuple[str, ...]:
    """Return the symbols with every occurrence of the pair, from left to right, made one symbol."""
    merged, index = [], 0
    while index < len(symbols):
        if symbols[index : index + 2] == pair:
            merged.append(pair[0] + pair[1])
            index += 2
        else:
            merged.append(symbols[index])
            index += 1
    return tuple(merged)


class _PairQueue:
    """Pairs by their counts, which may change: after a change a pair has to be added again.

    Pairs of one count lie in one list, sorted only when its turn comes.
    """

    def __init__(self, counts: Counter[Pair]) -> None:
        self.counts = counts
        self.levels: dict[int, list[Pair]] = {}
        self.heap: list[int] = []
        self.sorted_level = 0

    def add(self, pairs: Iterable[Pair]) -> None:
        for pair in pairs:
            level = self.counts[pair]
            if level not in self.levels:
                self.levels[level] = []
                heappush(self.heap, -level)
            if level == self.sorted_level:
                insort(self.levels[level], pair)
            else:
                self.levels[level].append(pair)

    def pop(self) -> Pair | None:
        """Return the most frequent pair, the last of several."""
        while self.heap:
            level = -self.heap[0]
            pairs = self.levels[level]
            if level != self.sorted_level:
                pairs.sort()
                self.sorted_level = level
            while pairs:
                pair = pairs.pop()
                if self.counts[pair] == level:
                    return pair
            heappop(self.heap)
            del self.levels[level]
            self.sorted_level = 0
        return None
