"""Training examples of several sentence pairs, against the pairs that they are made of."""

import numpy as np
import pytest
import torch
from fairseq.data import LanguagePairDataset, ListDataset, data_utils, indexed_dataset, iterators

from fairseq_rope.data.concatenated_pairs import ConcatenatedPairs

COUNT = 400


@pytest.fixture
def pairs(sentences, dictionary):
    """Pairs of which every source is different, with another number of words on each side."""
    sides = [sentences(COUNT, longest=9, seed=seed) for seed in (1, 2)]
    data = [(ListDataset(side), [len(tokens) for tokens in side]) for side in sides]
    (source, source_sizes), (target, target_sizes) = data
    return LanguagePairDataset(
        source, source_sizes, dictionary, target, target_sizes, dictionary, left_pad_source=True
    )


@pytest.fixture
def concatenated(pairs):
    def make(share=0.5, sentences=2, order="random", longest=(1024, 1024), seed=1):
        return ConcatenatedPairs(pairs, share, sentences, order, longest, seed)

    return make


def indices(data, index):
    """The pairs that an example is made of."""
    return [index, *data.others[index][data.others[index] >= 0]]


def joined(side, numbers, eos):
    """Word by word: all sentences without their eos, then one eos."""
    return [word for i in numbers for word in side[i].tolist() if word != eos] + [eos]


@pytest.mark.parametrize("order", ["random", "document"])
@pytest.mark.parametrize("most", [2, 4])
def test_both_sides_are_joined_by_the_same_partners(order, most, concatenated, pairs, dictionary):
    data = concatenated(0.7, most, order)
    for index in range(COUNT):
        numbers = indices(data, index)
        assert len(numbers) <= most
        if order == "document":
            assert numbers == list(range(index, index + len(numbers)))
        else:
            assert index not in numbers[1:]
        example = data[index]
        assert example["id"] == index
        assert example["source"].tolist() == joined(pairs.src, numbers, dictionary.eos())
        assert example["target"].tolist() == joined(pairs.tgt, numbers, dictionary.eos())


def test_sizes_are_those_of_the_examples(concatenated):
    data = concatenated(sentences=3)
    for epoch in (1, 2):
        data.set_epoch(epoch)
        sizes = [(len(data[i]["source"]), len(data[i]["target"])) for i in range(COUNT)]
        assert [tuple(data.size(i)) for i in range(COUNT)] == sizes
        assert data.sizes.tolist() == [list(size) for size in sizes]
        assert data.num_tokens_vec(np.arange(COUNT)).tolist() == [max(size) for size in sizes]
        assert [data.num_tokens(i) for i in range(COUNT)] == [max(size) for size in sizes]
        assert [sizes[i] for i in data.ordered_indices()] == sorted(sizes)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_share_is_respected_and_every_number_of_sentences_is_as_likely(share, concatenated):
    data = concatenated(share, sentences=4)
    numbers = []
    for epoch in range(1, 26):
        data.set_epoch(epoch)
        numbers += (data.others >= 0).sum(axis=1).tolist()
    shares = np.bincount(numbers, minlength=4) / len(numbers)
    assert shares == pytest.approx([1 - share, share / 3, share / 3, share / 3], abs=0.02)


def test_an_epoch_is_the_same_each_time_and_unlike_others(concatenated):
    data = concatenated()
    first = data.others
    data.set_epoch(2)
    second = data.others
    data.set_epoch(1)
    assert (data.others == first).all() and (concatenated().others == first).all()
    assert (second != first).mean() > 0.3
    assert (concatenated(seed=2).others != first).mean() > 0.3


def test_an_example_that_would_be_too_long_stays_single(concatenated, pairs):
    data = concatenated(share=1.0, longest=(14, 12))
    single = (data.others < 0).all(axis=1)
    assert 0.1 < single.mean() < 0.9
    assert (data.sizes <= (14, 12)).all()
    assert (data.sizes[single] == pairs.sizes[single]).all()
    kept, left_out = data.filter_indices_by_size(np.arange(COUNT), (14, 12))
    assert len(kept) == COUNT and not left_out
    kept, _ = data.filter_indices_by_size(np.arange(COUNT), (8, 8))
    assert kept.tolist() == np.flatnonzero((data.sizes <= 8).all(axis=1)).tolist()


def test_the_end_of_the_data_has_nothing_after_it(concatenated):
    data = concatenated(share=1.0, order="document")
    assert indices(data, COUNT - 2) == [COUNT - 2, COUNT - 1]
    assert indices(data, COUNT - 1) == [COUNT - 1]


def test_data_that_is_read_ahead_includes_the_partners(pairs, dictionary, tmp_path):
    """fairseq's `--dataset-impl cached` holds only what it was asked to read."""
    sides = []
    for name, side in (("source", pairs.src), ("target", pairs.tgt)):
        builder = indexed_dataset.make_builder(str(tmp_path / f"{name}.bin"), "cached")
        for tokens in side:
            builder.add_item(tokens)
        builder.finalize(str(tmp_path / f"{name}.idx"))
        sides.append(indexed_dataset.make_dataset(str(tmp_path / name), "cached", True))
    (source, target), sizes = sides, pairs.sizes.T
    cached = LanguagePairDataset(source, sizes[0], dictionary, target, sizes[1], dictionary)
    data, expected = (
        ConcatenatedPairs(base, 1.0, 3, "random", (1024, 1024), 1) for base in (cached, pairs)
    )
    assert data.supports_prefetch
    data.prefetch([5, 17])
    for index in (5, 17):
        assert data[index]["source"].tolist() == expected[index]["source"].tolist()
        assert data[index]["target"].tolist() == expected[index]["target"].tolist()


def epoch_of(data, epoch, workers, shards=1, shard=0):
    """The batches of an epoch, as fairseq's tasks make them."""
    data.set_epoch(epoch)
    with data_utils.numpy_seed(1 + epoch):
        order = data.ordered_indices()
    batches = data.batch_by_size(order, max_tokens=60)
    iterator = iterators.EpochBatchIterator(
        data, data.collater, batches, 1, shards, shard, workers, epoch
    )
    return list(iterator.next_epoch_itr())


def test_worker_processes_and_shards_see_the_same_batches(concatenated):
    data = concatenated()
    expected = epoch_of(data, 3, workers=0)
    tokens = [batch["net_input"]["src_tokens"] for batch in expected]
    assert max(x.numel() for x in tokens) <= 60
    assert sum(batch["nsentences"] for batch in expected) == COUNT
    found = epoch_of(concatenated(), 3, workers=2)
    assert all(torch.equal(x["target"], y["target"]) for x, y in zip(found, expected))
    halves = [epoch_of(concatenated(), 3, workers=0, shards=2, shard=n) for n in (0, 1)]
    for n, half in enumerate(halves):
        for mine, all_of_them in zip(half, expected[n::2]):
            assert torch.equal(mine["target"], all_of_them["target"])
