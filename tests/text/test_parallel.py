"""Worker processes: same lines, same order, bounded memory."""

import os
import signal

import pytest

from fairseq_rope.text.parallel import BATCH, map_lines


def shout(line):
    return line.upper()


def die(line):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(line):
    raise ValueError(f"no good: {line}")


LINES = [f"line {number}" for number in range(5 * BATCH + 7)]


@pytest.mark.parametrize("workers", [None, 1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1, len(LINES)])
def test_order_and_number_are_kept(workers, count):
    lines = LINES[:count]
    assert list(map_lines(shout, iter(lines), workers)) == [line.upper() for line in lines]


def test_reading_stays_a_few_batches_ahead():
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield "line"

    results = map_lines(shout, endless(), workers=2)
    for _ in range(3 * BATCH):
        next(results)
    assert taken <= 3 * BATCH + 6 * BATCH
    results.close()


def test_an_error_of_the_function_arrives():
    with pytest.raises(ValueError, match="no good: line 0"):
        list(map_lines(fail, LINES, workers=2))


def test_a_killed_worker_is_reported():
    with pytest.raises(MemoryError, match="2 worker processes was killed.*fewer `--workers`"):
        list(map_lines(die, LINES, workers=2))
