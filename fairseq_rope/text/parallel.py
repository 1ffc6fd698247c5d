"""A function over the lines of a stream, on all cores, in order, in flat memory."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Callable

LineFunction = Callable[[str], str]

BATCH = 2000
"""Lines a worker takes at a time: long against the cost of handing them over, short in memory."""

_function: LineFunction


def map_lines(
    function: LineFunction, lines: Iterable[str], workers: int | None = None
) -> Iterator[str]:
    """Yield ``function(line)`` for every line, in order.

    ``workers`` processes share the work, by default one for each core this process may use.
    ``function`` must be picklable. At most ``2 * workers + 1`` batches are in memory at a time.
    """
    batches = _batches(lines)
    start = list(islice(batches, 2))
    workers = workers or len(os.sched_getaffinity(0))
    if workers == 1 or len(start) < 2:
        yield from map(function, chain.from_iterable(chain(start, batches)))
        return
    for results in _map_batches(function, chain(start, batches), workers):
        yield from results


def _batches(lines: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(lines)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def _map_batches(
    function: LineFunction, batches: Iterator[list[str]], workers: int
) -> Iterator[list[str]]:
    pending: deque[Future[list[str]]] = deque()
    # The function is sent once to each worker: it may hold a large model.
    with ProcessPoolExecutor(workers, initializer=_set_function, initargs=(function,)) as pool:
        try:
            for batch in batches:
                pending.append(pool.submit(_apply, batch))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BrokenProcessPool:
            raise MemoryError(
                f"one of {workers} worker processes was killed, most often for want of memory; "
                "run with fewer `--workers`"
            ) from None
        finally:
            for future in pending:
                future.cancel()


def _set_function(function: LineFunction) -> None:
    global _function
    # Ctrl-C reaches every process of the terminal; the parent alone answers it. SIGTERM ends a
    # worker at once: the pool would take the parent's handler, which raises, for a result of the
    # function, and wait for a worker that goes on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _function = function


def _apply(batch: list[str]) -> list[str]:
    return list(map(_function, batch))
