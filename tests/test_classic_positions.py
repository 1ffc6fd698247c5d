"""ALiBi, relative positions, T5's buckets and xPos against loops, and what is their own."""

from types import SimpleNamespace

import pytest
import reference
import torch
from test_attention import padding_and_places, paddings, with_random_biases

from fairseq_rope.attention import KERNELS, AttentionKernel, AttentionMask, SoftmaxKernel
from fairseq_rope.attention.self_attention import SelfAttention
from fairseq_rope.positions import POSITIONS, Stack, alibi, relative, t5
from fairseq_rope.positions.rotary import Rotary
from fairseq_rope.positions.scheme import NO_POSITION
from fairseq_rope.positions.xpos import XPos, xpos_limit

HEADS, HEAD_DIM, LENGTH, CLIP = 3, 8, 5, 2
WIDTH = HEADS * HEAD_DIM
CONFIG = SimpleNamespace(
    relative_clip=CLIP,
    rope_base=10000.0,
    rope_layout="interleaved",
    rope_fraction=0.5,
    rope_scaling="none",
    rope_scaling_factor=None,
    rope_values=False,
    rope_cross_attention=False,
)
STACKS = [(name, stack) for name in ("alibi", "relative", "t5") for stack in ("encoder", "decoder")]
STACKS.append(("xpos", "decoder"))
schemes = pytest.mark.parametrize("name, stack", STACKS)
biases = pytest.mark.parametrize("name", ["alibi", "relative", "t5"])
all_names = pytest.mark.parametrize("name", ["alibi", "relative", "t5", "xpos"])


def scheme_of(name, stack, num_layers=1):
    """In float64, its parameters far enough from zero to be seen."""
    scheme = POSITIONS[name].build(CONFIG, Stack(stack, WIDTH, HEADS, num_layers, 1, 99))
    with torch.no_grad():
        for parameter in scheme.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return scheme.double()


def in_loops(name, stack, scheme, places):
    """What reference.multi_head is told of a scheme, for one sentence."""
    if name == "alibi":
        return {"bias": reference.alibi_bias(places, HEADS)}
    if name == "t5":
        return {"bias": reference.t5_bias(places, scheme.table, stack == "encoder")}
    if name == "relative":
        vectors = dict(enumerate(scheme.layers[0], -CLIP)) | (
            {} if stack == "encoder" else dict.fromkeys(range(1, CLIP + 1), scheme.layers[0][-1])
        )
        return {"bias": lambda head, q: reference.relative_bias(q, places, vectors, CLIP)}
    thetas = reference.frequencies(HEAD_DIM // 2)
    return {
        "turn_q": lambda q: reference.xpos(q, places, thetas, 1),
        "turn_k": lambda k: reference.xpos(k, places, thetas, -1),
    }


@schemes
@paddings
def test_self_attention_and_its_gradients_equal_the_loops(name, stack, side):
    module = with_random_biases(SelfAttention(WIDTH, HEADS, SoftmaxKernel()))
    scheme = scheme_of(name, stack)
    padding, places = padding_and_places(side)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    mask = AttentionMask(places, places, padding, causal=stack == "decoder")
    found = module(x, scheme(places)[0].own, mask)
    real = torch.ones(2, LENGTH, dtype=torch.bool) if padding is None else ~padding
    wanted = torch.zeros_like(found)
    for row in range(2):
        steps = range(LENGTH)
        sees = [
            [bool(real[row, s]) and (s <= t or stack == "encoder") for s in steps] for t in steps
        ]
        loops = in_loops(name, stack, scheme, places[row].tolist())
        output, _ = reference.multi_head(module, x[row], x[row], sees, **loops)
        wanted[row, real[row]] = output[real[row]]
    torch.testing.assert_close(found[real], wanted[real], atol=1e-5, rtol=0)

    weight = torch.randn_like(found)[real]
    inputs = [x, *module.parameters(), *scheme.parameters()]
    gradients = torch.autograd.grad((found[real] * weight).sum(), inputs)
    wanted_gradients = torch.autograd.grad((wanted[real] * weight).sum(), inputs)
    for gradient, wanted_gradient in zip(gradients, wanted_gradients):
        torch.testing.assert_close(gradient, wanted_gradient, atol=1e-4, rtol=0)


@all_names
def test_none_acts_on_the_attention_to_the_source(name):
    positions = scheme_of(name, "decoder", num_layers=2)(
        torch.arange(4)[None], torch.arange(6)[None]
    )
    assert len(positions) == 2
    assert all(p.target is NO_POSITION and p.source is NO_POSITION for p in positions)


@biases
def test_distances_are_taken_once_per_stack_and_pass(name, build, sentences, collate, monkeypatch):
    module, taken = {"alibi": alibi, "relative": relative, "t5": t5}[name], []
    distances = module.distances
    monkeypatch.setattr(module, "distances", lambda *places: taken.append(1) or distances(*places))
    model, tokens, cache = build(position=name), collate(sentences(3), left_pad=True), {}
    encoder_out = model.encoder(tokens)
    assert len(taken) == 1
    for step in (1, 2, 3):
        taken.clear()
        model.decoder(tokens[:, :step], encoder_out, incremental_state=cache)
        assert len(taken) == 1


@all_names
def test_layers_computed_twice_give_the_same_gradients(name, build, sentences, collate):
    source, target = collate(sentences(4), left_pad=True), collate(sentences(4, seed=2))
    gradients = []
    for twice in (False, True):
        model = build(**reference.position_options(name), checkpoint_activations=twice).train()
        model(source, None, target)[0].square().mean().backward()
        gradients.append({n: weight.grad for n, weight in model.named_parameters()})
    torch.testing.assert_close(gradients[1], gradients[0], atol=0, rtol=0)


class NoScores(AttentionKernel):
    has_scores = False


@all_names
def test_a_kernel_without_scores_is_refused_by_name(name, build, monkeypatch):
    monkeypatch.setitem(KERNELS, "linear", NoScores)
    with pytest.raises(ValueError, match=f"`position`='{name}'.*`attention`='linear'"):
        build(**reference.position_options(name), attention="linear")


# ALiBi


@pytest.mark.parametrize(
    "heads, slopes",
    [
        (4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        (12, [*(2**-h for h in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_the_slopes_are_those_of_the_paper(heads, slopes):
    assert alibi.alibi_slopes(heads) == pytest.approx(slopes, rel=1e-12)


@pytest.mark.parametrize("heads", range(1, 34))
def test_slopes_of_any_number_of_heads(heads):
    slopes = alibi.alibi_slopes(heads)
    assert len(set(slopes)) == heads
    assert slopes == pytest.approx(reference.alibi_slopes(heads), rel=1e-12)


# T5


@pytest.mark.parametrize("bidirectional", [False, True])
def test_buckets_of_all_distances(bidirectional):
    steps = range(-300, 301)
    found = t5.t5_buckets(torch.tensor(steps), bidirectional).tolist()
    assert found == [reference.t5_bucket(step, bidirectional) for step in steps]
    assert set(found) == set(range(32)) - ({16} if bidirectional else set())  # a key 0 places after
    far = [found[0], found[-1]]
    assert far == ([15, 31] if bidirectional else [31, 0])


def test_distances_beyond_the_last_bucket_are_as_the_last():
    position = scheme_of("t5", "encoder")(torch.arange(3)[None])[0].own
    bias = position.bias(torch.empty(0), torch.tensor([[0, 5000]]), torch.tensor([[0, 128, 5000]]))
    assert torch.equal(bias[..., 0, 1], bias[..., 0, 2])
    assert torch.equal(bias[..., 0, 0], bias[..., 1, 2])
    assert not torch.equal(bias[..., 0, 2], bias[..., 1, 0])


def test_one_table_serves_all_layers_of_a_stack(build):
    model = build(position="t5")
    for stack in (model.encoder, model.decoder):
        assert [x.shape for x in stack.embed_positions.parameters()] == [(32, 4)]
        assert len({id(p.own) for p in stack.embed_positions(torch.arange(5)[None])}) == 1


# Relative positions


def test_each_layer_has_a_table_and_the_decoder_s_look_back_only(build):
    model = build(position="relative", relative_clip=3, decoder_layers=3)
    shapes = [
        [tuple(x.shape) for x in stack.embed_positions.parameters()]
        for stack in (model.encoder, model.decoder)
    ]
    assert shapes == [[(7, 8)] * 2, [(4, 8)] * 3]


def test_distances_are_clipped(build):
    """Keys 3 places away and farther get one vector, those nearer each another."""
    position = scheme_of("relative", "encoder")(torch.arange(3)[None])[0].own
    q = torch.ones(1, 1, 1, HEAD_DIM, dtype=torch.float64)
    keys = torch.tensor([[0, 500, 997, 998, 999, 1000, 1001, 1002, 1003, 2000]])
    found = position.bias(q, torch.tensor([[1000]]), keys).flatten().tolist()
    assert found[0] == found[1] == found[2] == found[3]
    assert found[7] == found[8] == found[9]
    assert len(set(found[3:8])) == 5


def test_tables_follow_their_layers_in_pruning(build):
    full = build(position="relative", decoder_layers=3)
    pruned = build(
        position="relative",
        decoder_layers=3,
        encoder_layers_to_keep="1",
        decoder_layers_to_keep="0,2",
    )
    pruned.load_state_dict(full.state_dict())
    encoder, decoder = (stack.embed_positions.layers for stack in (full.encoder, full.decoder))
    torch.testing.assert_close(list(pruned.encoder.embed_positions.layers), [encoder[1]])
    torch.testing.assert_close(
        list(pruned.decoder.embed_positions.layers), [decoder[0], decoder[2]]
    )


def test_clips_that_do_not_fit_are_refused(build):
    for clip in (0, -2):
        with pytest.raises(ValueError, match=f"`relative_clip` must be at least 1, but is {clip}"):
            build(position="relative", relative_clip=clip)
    with pytest.raises(ValueError, match="`relative_clip`=8 has an effect .*'relative' only"):
        build(relative_clip=8)
    with pytest.raises(ValueError, match="trained with `relative_clip`=16, .* has 8"):
        build(position="relative", relative_clip=8).load_state_dict(
            build(position="relative").state_dict()
        )


# xPos


def pair_products(scheme, query_place, key_place):
    """Per pair of a head, the complex number that its score is the real part of, for q = k = 1."""
    one = torch.ones(1, 1, 1, scheme.rotary.width, dtype=torch.float64)
    q = scheme(torch.tensor([[query_place]]))[0].own.query(one)
    k = scheme(torch.tensor([[key_place]]))[0].own.key(one)
    q, k = (torch.view_as_complex(x.flatten().view(-1, 2)) for x in (q, k))
    return q * k.conj() / 2


def test_a_score_depends_on_the_distance_only_and_decays_into_the_past():
    scheme = XPos(Rotary(1, 64))
    for distance in (0, 1, 7, 300):
        here, later = (pair_products(scheme, m + distance, m) for m in (0, 1000))
        torch.testing.assert_close(later, here, atol=1e-4, rtol=0)
    sizes = torch.stack([pair_products(scheme, m, 0).abs() for m in range(0, 600, 50)])
    assert torch.equal(sizes[0], torch.ones(32, dtype=torch.float64))
    assert (sizes.diff(dim=0) < 0).all()  # each pair, with each step
    assert (sizes.diff(dim=1) > 0)[1:].all()  # the fastest pairs most
    torch.testing.assert_close(
        pair_products(scheme, 512, 0).abs()[0], torch.tensor(0.4 / 1.4).double(), atol=1e-5, rtol=0
    )


LIMITS = {torch.float16: 2266, torch.bfloat16: 33994, torch.float32: 33994, torch.float64: 33994}


@pytest.mark.parametrize("dtype", LIMITS)
def test_places_whose_scales_a_type_cannot_hold_are_refused(dtype):
    scheme, limit = XPos(Rotary(1, 8)), LIMITS[dtype]
    assert xpos_limit(dtype) == limit
    last = scheme(torch.tensor([[limit - 1]]))[0].own
    ones = torch.ones(1, 1, 1, 8, dtype=dtype)
    keys, queries = last.key(60 * ones), last.query(ones / 60)
    assert torch.isfinite(keys).all()
    score = (queries.double() * keys.double()).sum()
    assert float(score) == pytest.approx(8, rel=8 * max(torch.finfo(dtype).eps, 1e-5))
    beyond = scheme(torch.tensor([[0, limit]]))[0].own
    said = f"{limit + 1} tokens is longer than the {limit} .*`decoder_position`='xpos'.*{dtype}"
    for turn in (beyond.key, beyond.query):
        with pytest.raises(ValueError, match=said.replace("torch.", "")):
            turn(ones)


def test_the_encoder_is_refused_xpos_with_a_remedy(build):
    said = r"`position`='xpos' cannot serve the encoder, .*grow.*`decoder_position`='xpos'"
    with pytest.raises(ValueError, match=said):
        build(position="xpos")


@pytest.mark.parametrize("position", ["rotary", "sinusoidal"])
@pytest.mark.parametrize(
    "options, said",
    [
        ({"rope_scaling": "linear", "rope_scaling_factor": 2.0}, "`rope_scaling`=linear"),
        ({"rope_values": True}, "`rope_values`=True"),
    ],
)
def test_rotary_options_that_xpos_lacks_are_refused(build, position, options, said):
    with pytest.raises(ValueError, match=f"{said} has (an|no) effect"):
        build(position=position, decoder_position="xpos", **options)


@pytest.mark.parametrize(
    "option", [{"rope_base": 50.0}, {"rope_layout": "half"}, {"rope_fraction": 0.5}]
)
def test_rotary_options_that_xpos_shares_change_it(build, sentences, collate, option):
    tokens = collate(sentences(3))
    logits = [
        build(position="none", decoder_position="xpos", **options)(tokens, None, tokens)[0]
        for options in ({}, option)
    ]
    assert (logits[0] - logits[1]).abs().max() > 0.01


def test_attention_to_the_source_turns_without_scale():
    places, source_places = torch.arange(3, 7)[None], torch.arange(900, 906)[None]
    rotary = Rotary(2, 8, cross_attention=True)
    found, wanted = (scheme(places, source_places)[1] for scheme in (XPos(rotary), rotary))
    q, k = torch.randn(2, 1, HEADS, 4, HEAD_DIM)
    assert torch.equal(found.target.query(q), q)
    assert torch.equal(found.target.rotate(q), wanted.target.rotate(q))
    k = torch.randn(1, HEADS, 6, HEAD_DIM)
    assert torch.equal(found.source.key(k), k)
    assert torch.equal(found.source.rotate(k), wanted.source.rotate(k))
    assert XPos(rotary)(places, None)[0].source is NO_POSITION
