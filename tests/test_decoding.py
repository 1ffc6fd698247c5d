"""Cached, batched decoding against slow decoding without either."""

import statistics
import time

import pytest
import reference
import torch
from fairseq.search import Sampling
from fairseq.sequence_generator import SequenceGenerator

EOS, PAD = 2, 1


@pytest.fixture
def build(build):
    """As in other tests, but words are drawn to eos, so that sentences end at different steps.

    That hangs on the weights, which come out differently where a scheme draws tables of its own.
    """
    seeds = {"relative": 7, "t5": 7}

    def make(**options):
        model = build(**{"seed": seeds.get(options.get("position"), 1), **options})
        with torch.no_grad():
            towards_eos = model.decoder.output_projection.weight[EOS]
            model.decoder.layers[-1].final_layer_norm.bias.add_(towards_eos, alpha=4.0)
        return model

    return make


@pytest.fixture
def translate(dictionary, collate):
    """translate(model, sources, ...): fairseq's beam search; per sentence [(score, words), ...]."""

    def make(model, sources, batch_size=50, left_pad=True, beam=5, max_len_b=12, **options):
        generator = SequenceGenerator([model], dictionary, beam, max_len_b=max_len_b, **options)
        found = []
        for start in range(0, len(sources), batch_size):
            tokens = collate(sources[start : start + batch_size], left_pad)
            lengths = tokens.ne(PAD).sum(dim=1)
            sample = {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}
            found += generator.generate([model], sample)
        return [[(float(h["score"]), h["tokens"].tolist()) for h in hypos] for hypos in found]

    return make


def assert_same(found, wanted):
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted):
        assert [words for _, words in ours] == [words for _, words in theirs]
        assert [score for score, _ in ours] == pytest.approx([s for s, _ in theirs], abs=1e-4)


def decode(model, target, encoder_out, chunk):
    """Logits from the cache, `chunk` tokens a step."""
    cache, logits = {}, []
    for end in [*range(chunk, target.size(1), chunk), target.size(1)]:
        logits.append(model.decoder(target[:, :end], encoder_out, incremental_state=cache)[0])
    return torch.cat(logits, dim=1)


# The cache


@pytest.mark.parametrize("left_pad_target", [False, True])
@pytest.mark.parametrize("chunk", [1, 3])
def test_cached_logits_equal_those_of_the_whole_target(
    build, sentences, collate, scheme, chunk, left_pad_target
):
    """20 tokens one by one, in chunks of 3 and at once; yarn crosses its trained length of 8."""
    model = build(**scheme)
    source = collate(sentences(5), left_pad=True)
    target = collate(sentences(5, longest=19, seed=3), left_pad_target, width=20)
    encoder_out = model.encoder(source)
    whole = model.decoder(target, encoder_out)[0]
    real = target.ne(PAD)
    cached = decode(model, target, encoder_out, chunk)
    torch.testing.assert_close(cached[real], whole[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize("left_pad_target", [False, True])
@pytest.mark.parametrize("left_pad_source", [False, True])
def test_padding_and_company_change_no_logits(
    build, sentences, collate, scheme, left_pad_source, left_pad_target
):
    model = build(**scheme)
    sources, targets = sentences(7), sentences(7, seed=2)
    source = collate(sources, left_pad_source, width=17)
    target = collate(targets, left_pad_target, width=19)
    together = model(source, None, target)[0]
    for row, (words, answer) in enumerate(zip(sources, targets)):
        alone = model(words[None], None, answer[None])[0][0]
        torch.testing.assert_close(together[row][target[row].ne(PAD)], alone, atol=1e-5, rtol=0)


def test_each_step_computes_one_token_and_takes_the_same_time(build):
    """From step 10 to step 200, twenty hypotheses."""
    model, cache = build(), {}
    source, target = torch.randint(4, 24, (20, 10)), torch.randint(4, 24, (20, 200))
    computed, seconds = [], []
    model.decoder.layers[0].fc1.register_forward_hook(
        lambda module, inputs, output: computed.append(output.size(1))
    )
    with torch.no_grad():
        encoder_out = model.encoder(source)
        for step in range(1, 201):
            start = time.perf_counter()
            model.decoder(target[:, :step], encoder_out, incremental_state=cache)
            seconds.append(time.perf_counter() - start)
    assert computed == [1] * 200
    assert statistics.median(seconds[170:]) < 3 * statistics.median(seconds[10:40])


def test_keys_are_rotated_once_per_token(build, monkeypatch):
    """Each step turns one query and one key a layer, and the source's keys at the first alone."""
    from fairseq_rope.positions import rotary

    turned, turn = [], rotary.turn
    monkeypatch.setattr(rotary, "turn", lambda x, *args: turned.append(x.size(2)) or turn(x, *args))
    model, cache = build(rope_cross_attention=True), {}
    source, target = torch.randint(4, 24, (2, 7)), torch.randint(4, 24, (2, 5))
    encoder_out = model.encoder(source)
    for step in range(1, 6):
        turned.clear()
        model.decoder(target[:, :step], encoder_out, incremental_state=cache)
        assert sorted(turned) == [1] * 6 + ([7, 7] if step == 1 else [])


# Beam search


def test_beam_search_equals_a_slow_search_without_cache(build, sentences, translate, scheme):
    model, sources = build(**scheme), sentences(50)
    wanted = []
    with torch.no_grad():
        for words in sources:
            encoder_out = model.encoder(words[None])

            def next_log_probs(prefixes, encoder_out=encoder_out):
                rows = torch.zeros(len(prefixes), dtype=torch.long)
                repeated = model.encoder.reorder_encoder_out(encoder_out, rows)
                logits = model.decoder(torch.tensor(prefixes), repeated)[0][:, -1]
                return logits.log_softmax(dim=-1).tolist()

            wanted.append(reference.beam_search(next_log_probs, 5, 12, EOS, PAD))
    assert_same(translate(model, sources), wanted)
    # Sentences left the batch at different steps, some before the last.
    assert len({max(len(words) for _, words in hypotheses) for hypotheses in wanted}) > 2


def test_batch_size_and_padding_change_no_hypothesis(build, sentences, translate, scheme):
    model, sources = build(**scheme), sentences(64)
    wanted = translate(model, sources, batch_size=1)
    for batch_size in (7, 64):
        for left_pad in (True, False):
            assert_same(translate(model, sources, batch_size, left_pad), wanted)


def test_batch_order_changes_no_hypothesis(build, sentences, translate, scheme):
    model, sources = build(**scheme), sentences(20)
    assert_same(translate(model, sources[::-1])[::-1], translate(model, sources))


@pytest.mark.parametrize("beam", [1, 2, 7])
def test_two_searches_with_other_sizes_equal_fresh_ones(build, sentences, translate, scheme, beam):
    used = build(**scheme)
    translate(used, sentences(10), beam=5, max_len_b=20)
    sources = sentences(9, longest=7, seed=2)
    wanted = translate(build(**scheme), sources, beam=beam, max_len_b=9)
    assert_same(translate(used, sources, beam=beam, max_len_b=9), wanted)


@pytest.mark.parametrize("rows", [3, 5, 10])
@pytest.mark.parametrize("same", [False, True])
def test_scoring_from_the_cache_after_a_beam_search(
    build, sentences, collate, translate, scheme, rows, same
):
    """The beam size outlives the search, and 5 or 10 rows then look like hypotheses of 1 or 2."""
    model = build(**scheme)
    translate(model, sentences(4), beam=5)
    source, target = collate(sentences(rows)), collate(sentences(rows, seed=2))
    source = source[:1].expand_as(source) if same else source
    encoder_out = model.encoder(source)
    found = decode(model, target, encoder_out, chunk=1)
    fresh = build(**scheme)
    wanted = fresh(source, None, target)[0]
    real = target.ne(PAD)
    torch.testing.assert_close(found[real], wanted[real], atol=1e-5, rtol=0)


def test_equal_sentences_in_a_batch_get_equal_hypotheses(build, sentences, translate, scheme):
    model, sources = build(**scheme), sentences(3)
    wanted = translate(model, sources, batch_size=1)
    repeated = [words for words in sources for _ in range(5)]
    found = translate(model, repeated)
    assert_same(found, [hypotheses for hypotheses in wanted for _ in range(5)])


def test_sampling_without_a_beam_after_a_beam_search(
    build, sentences, translate, dictionary, scheme
):
    """The beam size outlives the search, and repeated lines then look like hypotheses."""
    used, fresh = build(**scheme), build(**scheme)
    translate(used, sentences(4), beam=5)
    sources = [words for words in sentences(2) for _ in range(5)]
    found = []
    for model in (used, fresh):
        torch.manual_seed(1)
        search = Sampling(dictionary, sampling_topk=-1)
        found.append(translate(model, sources, beam=1, search_strategy=search))
    assert_same(*found)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    "beam, orders",
    [
        (2, [[1, 1, 5, 4]]),  # a row taken twice, rows swapped, and the second sentence ends
        (2, [[1, 1, 5, 4], [3, 2]]),  # twice between two steps
        (2, [[2, 3, 0, 1, 4, 5]]),  # sentences change places and none ends
        (2, [[3, 4, 5]]),  # the rows of a sentence part
        (2, [[1, 2, 3, 4], [3, 0, 1]]),  # they part, and go on changing places
        (1, [[5, 0, 0, 3, 1, 2]]),  # without a beam any row may be taken
    ],
)
def test_reordering_the_cache_reorders_the_hypotheses(
    build, sentences, collate, scheme, beam, orders, trained
):
    """With and without gradients, since the cache is copied in two ways."""
    model = build(**scheme)
    model.set_beam_size(beam)
    tokens = collate(sentences(6 // beam, longest=8), left_pad=True)
    source = tokens.repeat_interleave(beam, dim=0)
    target = collate(sentences(6, longest=8, seed=2))[:, :3]
    cache = {}
    with torch.set_grad_enabled(trained):
        encoder_out = model.encoder(source)
        model.decoder(target[:, :2], encoder_out, incremental_state=cache)
        for order in map(torch.tensor, orders):
            model.decoder.reorder_incremental_state_scripting(cache, order)
            encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
            source, target = source[order], target[order]
        found = model.decoder(target, encoder_out, incremental_state=cache)[0][:, -1]
        wanted = build(**scheme)(source, None, target)[0][:, -1]
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_given_first_words_are_followed_as_if_chosen(build, sentences, collate, dictionary, scheme):
    model, tokens = build(**scheme), collate(sentences(8), left_pad=True)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(dim=1)}}
    generator = SequenceGenerator([model], dictionary, 1, max_len_b=10, min_len=4)
    free = generator.generate([model], sample)
    first = torch.stack([hypotheses[0]["tokens"][:3] for hypotheses in free])
    forced = generator.generate([model], sample, prefix_tokens=first)
    for found, wanted in zip(forced, free):
        assert found[0]["tokens"].tolist() == wanted[0]["tokens"].tolist()
        assert float(found[0]["score"]) == pytest.approx(float(wanted[0]["score"]), abs=1e-5)


def test_an_ensemble_of_two_equals_averaged_probabilities(build, sentences, collate, dictionary):
    """Two models that know word order in different ways, step by step."""
    models = [build(rope_cross_attention=True), build(position="sinusoidal", seed=2)]
    source = collate(sentences(1))
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(dim=1)}}
    generator = SequenceGenerator(models, dictionary, 5, max_len_b=10)
    found = generator.generate(models, sample)[0]

    def next_log_probs(prefixes):
        target = torch.tensor(prefixes)
        sources = source.expand(len(prefixes), -1)
        probs = [m(sources, None, target)[0][:, -1].softmax(dim=-1) for m in models]
        return (sum(probs) / 2).log().tolist()

    wanted = reference.beam_search(next_log_probs, 5, 10, EOS, PAD)
    assert_same([[(float(h["score"]), h["tokens"].tolist()) for h in found]], [wanted])


# Precision and training


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_models_decode_from_the_cache_as_from_the_whole_target(
    build, sentences, collate, scheme, dtype
):
    """Within a few roundings of the logits, at places far beyond what the type can count."""
    model = build(sharpness=1.0, **scheme).to(dtype)
    source = collate(sentences(3), left_pad=True)
    target = torch.randint(4, 24, (3, 300))
    with torch.no_grad():
        encoder_out = model.encoder(source)
        whole = model.decoder(target, encoder_out)[0]
        cached = decode(model, target, encoder_out, chunk=50)
        exact = build(sharpness=1.0, **scheme)(source, None, target)[0]
    assert whole.dtype == dtype
    tolerance = 16 * torch.finfo(dtype).eps * float(exact.abs().max())
    torch.testing.assert_close(cached, whole, atol=tolerance, rtol=0)
    torch.testing.assert_close(whole.float(), exact, atol=tolerance, rtol=0)


def test_autocast_gives_the_logits_within_a_few_roundings(build, sentences, collate, scheme):
    model = build(sharpness=1.0, **scheme)
    source, target = collate(sentences(3), left_pad=True), torch.randint(4, 24, (3, 300))
    exact = model(source, None, target)[0]
    with torch.autocast("cpu", torch.bfloat16):
        logits, extra = model.train()(source, None, target)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    tolerance = 16 * torch.finfo(torch.bfloat16).eps * float(exact.detach().abs().max())
    torch.testing.assert_close(logits.float(), exact, atol=tolerance, rtol=0)
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


@pytest.mark.parametrize("pre_norm", [False, True])
def test_autocast_adds_residuals_in_float32(build, sentences, collate, pre_norm):
    sides = {f"{side}_normalize_before": pre_norm for side in ("encoder", "decoder")}
    model, tokens = build(**sides), collate(sentences(3))
    with torch.autocast("cpu", torch.bfloat16):
        _, extra = model(tokens, None, tokens, return_all_hiddens=True)
    assert {state.dtype for state in extra["inner_states"]} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_models_score_their_hypotheses_as_float32_does(
    build, sentences, translate, scheme, dtype
):
    exact, sources = build(sharpness=1.0, **scheme), sentences(6)
    found = translate(build(sharpness=1.0, **scheme).to(dtype), sources)
    for source, hypotheses in zip(sources, found):
        for score, words in hypotheses:
            target = torch.tensor([words])
            logits = exact(source[None], None, target.roll(1, dims=1))[0]
            wanted = -torch.nn.functional.cross_entropy(logits[0], target[0])
            assert score == pytest.approx(wanted.item(), abs=8 * torch.finfo(dtype).eps)


def test_validation_after_more_training_uses_the_new_weights(
    build, sentences, collate, translate, scheme
):
    """Validate, train on, validate again: nothing packed or cached from the first time is used."""
    model = build(**scheme)
    source, target = collate(sentences(8)), collate(sentences(8, seed=2))
    before = model(source, None, target)[0]
    translate(model, sentences(8))
    optimiser = torch.optim.SGD(model.train().parameters(), lr=0.5)
    logits = model(source, None, target)[0]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
    optimiser.step()
    model.eval()
    fresh = build(**scheme, seed=2)
    fresh.load_state_dict(model.state_dict())
    after = model(source, None, target)[0]
    assert (after - before).abs().max() > 0.01
    assert torch.equal(after, fresh(source, None, target)[0])
    assert_same(translate(model, sentences(8)), translate(fresh, sentences(8)))
