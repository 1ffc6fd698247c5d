"""Attention modules against loops, masks and padding, and the hook for score biases."""

import pytest
import reference
import torch
from torch.nn import functional as F

from fairseq_rope.attention import AttentionMask, SoftmaxKernel
from fairseq_rope.attention.cross_attention import CrossAttention
from fairseq_rope.attention.self_attention import SelfAttention
from fairseq_rope.positions import POSITIONS, AttentionPosition, LayerPositions, PositionScheme
from fairseq_rope.positions.rotary import Rotary
from fairseq_rope.rotation import RotaryScaling

HEADS, HEAD_DIM, LENGTH = 3, 8, 5
WIDTH = HEADS * HEAD_DIM
YARN = RotaryScaling("yarn", 4.0, original_positions=8)

# Each scheme with what its reference needs: frequencies and the factor of the scores.
ROTARY = {
    "none": (PositionScheme(1), [], 1.0),
    "rotary": (Rotary(1, HEAD_DIM), reference.frequencies(HEAD_DIM), 1.0),
    "half": (Rotary(1, HEAD_DIM, layout="half"), reference.frequencies(HEAD_DIM), 1.0),
    "fraction": (Rotary(1, 4), reference.frequencies(4), 1.0),
    "values": (Rotary(1, HEAD_DIM, values=True), reference.frequencies(HEAD_DIM), 1.0),
    "yarn": (
        Rotary(1, HEAD_DIM, scaling=YARN),
        reference.yarn_frequencies(HEAD_DIM, 4.0, 8),
        YARN.logit_scale,
    ),
}
schemes = pytest.mark.parametrize("name", ROTARY)

PADDING = {
    "no padding": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "left": [[1, 1, 0, 0, 0], [0, 0, 0, 0, 0]],
    "right": [[0, 0, 0, 0, 0], [0, 0, 0, 1, 1]],
}
paddings = pytest.mark.parametrize("side", PADDING)


def with_random_biases(module):
    """In float64, with scores that differ and no bias left at fairseq's zero."""
    with torch.no_grad():
        for name, weight in module.named_parameters():
            weight.copy_(torch.randn_like(weight) * (0.5 if name.endswith("bias") else 0.3))
    return module.double().eval()


def padding_and_places(side):
    padding = torch.tensor(PADDING[side], dtype=torch.bool)
    places = (torch.arange(LENGTH) - padding.long().cumprod(dim=1).sum(dim=1)[:, None]).clamp(min=0)
    return padding if padding.any() else None, places


def turning(name, places):
    """The turn functions of reference.multi_head for one sentence."""
    scheme, thetas, scale = ROTARY[name]
    layout = getattr(scheme, "layout", "interleaved")

    def turn(x):
        return reference.rotate(x, places.tolist(), thetas, layout)

    return {
        "turn_q": turn,
        "turn_k": turn,
        "turn_v": turn if getattr(scheme, "values", False) else None,
        "scale": scale,
    }


@schemes
@paddings
@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_and_its_gradients_equal_the_loops(name, side, causal):
    module = with_random_biases(SelfAttention(WIDTH, HEADS, SoftmaxKernel()))
    padding, places = padding_and_places(side)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    position = ROTARY[name][0](places)[0].own
    found = module(x, position, AttentionMask(places, places, padding, causal))
    real = torch.ones(2, LENGTH, dtype=torch.bool) if padding is None else ~padding
    wanted = torch.zeros_like(found)
    for row in range(2):
        visible = [
            [bool(real[row, s]) and (s <= t or not causal) for s in range(LENGTH)]
            for t in range(LENGTH)
        ]
        kept = [t for t in range(LENGTH) if real[row, t]]
        output, _ = reference.multi_head(
            module, x[row], x[row], visible, **turning(name, places[row])
        )
        wanted[row, kept] = output[kept]
    torch.testing.assert_close(found[real], wanted[real], atol=1e-5, rtol=0)

    weight = torch.randn_like(found)[real]
    inputs = [x, *module.parameters()]
    gradients = torch.autograd.grad((found[real] * weight).sum(), inputs)
    wanted_gradients = torch.autograd.grad((wanted[real] * weight).sum(), inputs)
    for gradient, wanted_gradient in zip(gradients, wanted_gradients):
        torch.testing.assert_close(gradient, wanted_gradient, atol=1e-4, rtol=0)


@schemes
@pytest.mark.parametrize("hypotheses", [1, 3])
@pytest.mark.parametrize("need_weights", [False, True])
def test_cross_attention_equals_the_loops_with_unequal_lengths(name, hypotheses, need_weights):
    """Target places on queries, pad-aware source places on keys; a sentence serves its rows."""
    module = with_random_biases(CrossAttention(WIDTH, HEADS, 16, SoftmaxKernel()))
    padding, source_places = padding_and_places("left")
    target_places = torch.arange(2, 5)[None]
    x = torch.randn(2 * hypotheses, 3, WIDTH, dtype=torch.float64)
    source = torch.randn(2, LENGTH, 16, dtype=torch.float64)
    scheme = ROTARY[name][0]
    found, weights = module(
        x,
        source,
        scheme(target_places)[0].own,
        scheme(source_places)[0].own,
        AttentionMask(target_places, source_places, padding),
        need_weights=need_weights,
    )
    assert (weights is not None) == need_weights
    for row in range(2 * hypotheses):
        sentence = row // hypotheses
        keys = turning(name, source_places[sentence])
        queries = turning(name, target_places[0])
        wanted, wanted_weights = reference.multi_head(
            module,
            x[row],
            source[sentence],
            (~padding[sentence]).expand(3, -1).tolist(),
            **{**keys, "turn_q": queries["turn_q"]},
        )
        torch.testing.assert_close(found[row], wanted, atol=1e-5, rtol=0)
        if need_weights:
            torch.testing.assert_close(weights[row].double(), wanted_weights, atol=1e-5, rtol=0)


def test_each_head_sees_distances_only():
    """Moving all places leaves each head's output alone; moving the keys' alone changes each."""
    q, k, v = torch.randn(3, 2, HEADS, LENGTH, HEAD_DIM)
    scheme, places = Rotary(1, HEAD_DIM), torch.arange(LENGTH)[None]
    mask = AttentionMask(places, places)

    def attend(query_shift, key_shift):
        positions = (scheme(places + shift)[0].own for shift in (query_shift, key_shift))
        return SoftmaxKernel()(q, k, v, *positions, mask, {}).values

    torch.testing.assert_close(attend(90, 90), attend(0, 0), atol=1e-4, rtol=0)
    per_head = (attend(90, 0) - attend(0, 0)).abs().amax(dim=(0, 2, 3))
    assert (per_head > 0.05).all()


@paddings
@pytest.mark.parametrize("causal", [False, True])
def test_weights_are_those_that_the_fused_kernel_uses(side, causal):
    q, k, v = torch.randn(3, 2, HEADS, LENGTH, HEAD_DIM)
    padding, places = padding_and_places(side)
    mask = AttentionMask(places, places, padding, causal)
    none = AttentionPosition()
    fused = SoftmaxKernel()(q, k, v, none, none, mask, {}).values
    shown = SoftmaxKernel()(q, k, v, none, none, mask, {}, need_weights=True)
    torch.testing.assert_close(shown.values, fused, atol=1e-6, rtol=0)
    torch.testing.assert_close(shown.weights @ v, fused, atol=1e-6, rtol=0)
    if padding is not None:
        queries = ~padding[:, None, :, None] & padding[:, None, None, :]
        assert not shown.weights[queries.expand_as(shown.weights)].any()


@paddings
def test_what_stands_at_padding_reaches_no_real_token(build, side):
    layer = build().encoder.layers[0]
    padding, places = padding_and_places(side)
    position = Rotary(1, 8)(places)[0].own
    mask = AttentionMask(places, places, padding)
    real = torch.ones(2, LENGTH, dtype=torch.bool) if padding is None else ~padding
    x = torch.randn(2, LENGTH, 32)
    disturbed = torch.where(real[..., None], x, 1000 * torch.randn_like(x))
    wanted = layer(x, position, mask)[real]
    torch.testing.assert_close(layer(disturbed, position, mask)[real], wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_source_of_nothing_but_padding_has_finite_loss_and_gradients(
    build, scheme, pre_norm, dtype
):
    model = build(
        **scheme, encoder_normalize_before=pre_norm, decoder_normalize_before=pre_norm
    ).to(dtype)
    source = torch.tensor([[4, 5, 2], [1, 1, 1]])
    logits, extra = model(source, None, torch.tensor([[2, 4, 5], [2, 6, 1]]))
    assert torch.isfinite(logits).all()
    assert torch.isfinite(extra["attn"][0]).all()
    F.cross_entropy(logits.float().flatten(0, 1), torch.arange(6) + 4).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_a_source_of_only_eos_is_read_alike_alone_and_in_a_batch(build, scheme):
    model, target = build(**scheme), torch.tensor([[2, 4, 5]])
    alone = model(torch.tensor([[2]]), None, target)[0]
    assert torch.isfinite(alone).all()
    for batch in ([[1, 1, 2], [4, 5, 2]], [[2, 1, 1], [4, 5, 2]]):
        together = model(torch.tensor(batch), None, target.expand(2, -1))[0]
        torch.testing.assert_close(together[:1], alone, atol=1e-5, rtol=0)


def test_attention_to_the_source_is_rotated_only_when_asked(build, sentences, collate):
    source, target = collate(sentences(3)), collate(sentences(3, longest=5, seed=2))
    for rotated in (False, True):
        model = build(rope_cross_attention=rotated)
        encoder_out = model.encoder(source)
        before = model.decoder(target, encoder_out)[0]
        encoder_out["encoder_places"] = [encoder_out["encoder_places"][0] + 3]
        after = model.decoder(target, encoder_out)[0]
        assert (after - before).abs().max() > 0.05 if rotated else torch.equal(after, before)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_evaluation_computes_what_training_computed(build, sentences, collate, scheme, activation):
    """No fused path of torch takes the encoder over in eval mode and forgets the positions."""
    model = build(**scheme, activation_fn=activation)
    source, target = collate(sentences(4), left_pad=True), collate(sentences(4, seed=2))
    trained = model.train()(source, None, target)[0]
    with torch.no_grad():
        evaluated = model.eval()(source, None, target)[0]
    torch.testing.assert_close(evaluated, trained, atol=1e-5, rtol=0)


def test_attention_dropout_is_for_training_or_when_retained(build, sentences, collate):
    tokens = collate(sentences(3))
    model = build(attention_dropout=0.5)

    def differs():
        return not torch.equal(model(tokens, None, tokens)[0], model(tokens, None, tokens)[0])

    assert not differs()
    model.train()
    assert differs()
    model.eval()
    assert not differs()
    model.make_generation_fast_(retain_dropout=True)
    assert differs()


def test_dropped_attention_weights_are_made_up_for():
    """The mean over many draws is the output without dropout."""
    q, k, v = torch.randn(3, 1, 1, 4, HEAD_DIM)
    places, none = torch.arange(4)[None], AttentionPosition()
    mask = AttentionMask(places, places)
    for need_weights in (False, True):
        many = [x.expand(20000, -1, -1, -1) for x in (q, k, v)]
        dropped = SoftmaxKernel()(*many, none, none, mask, {}, 0.3, need_weights).values
        plain = SoftmaxKernel()(q, k, v, none, none, mask, {}).values
        torch.testing.assert_close(dropped.mean(dim=0), plain[0], atol=0.05, rtol=0)


# A scheme that the package does not know: one class and one entry in the dict.


class Slope(PositionScheme):
    """A penalty that grows with the distance, steeper from head to head (after ALiBi)."""

    def __init__(self, num_layers, num_heads):
        super().__init__(num_layers)
        self.num_heads = num_heads

    @classmethod
    def build(cls, config, stack):
        return cls(stack.num_layers, stack.num_heads)

    def forward(self, places, source_places=None):
        return [LayerPositions(SlopePosition(self.num_heads))] * self.num_layers


class SlopePosition(AttentionPosition):
    def __init__(self, num_heads):
        self.slopes = torch.arange(1.0, num_heads + 1) / num_heads

    def bias(self, q, query_places, key_places):
        distance = (query_places[:, :, None] - key_places[:, None, :]).abs()
        return -self.slopes[:, None, None] * distance[:, None]


@pytest.fixture
def slope(build, monkeypatch):
    monkeypatch.setitem(POSITIONS, "slope", Slope)
    return build(position="slope")


@paddings
@pytest.mark.parametrize("causal", [False, True])
def test_a_score_bias_equals_the_loops(side, causal):
    module = with_random_biases(SelfAttention(WIDTH, HEADS, SoftmaxKernel()))
    padding, places = padding_and_places(side)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    found = module(x, SlopePosition(HEADS), AttentionMask(places, places, padding, causal))
    for row in range(2):
        real = [padding is None or not padding[row, s] for s in range(LENGTH)]
        steps = range(LENGTH)
        wanted, _ = reference.multi_head(
            module,
            x[row],
            x[row],
            [[real[s] and (s <= t or not causal) for s in steps] for t in steps],
            bias=[
                [[-(h + 1) / HEADS * abs(t - s) for s in steps] for t in steps]
                for h in range(HEADS)
            ],
        )
        torch.testing.assert_close(found[row][real], wanted[real], atol=1e-5, rtol=0)


def test_a_scheme_from_outside_knows_word_order(slope, build, sentences, collate):
    source, target = collate(sentences(3)), collate(sentences(3, seed=2))
    biased = slope(source, None, target)[0]
    plain = build(position="none")(source, None, target)[0]
    assert (biased - plain).abs().max() > 0.05


def test_a_scheme_from_outside_is_blind_to_padding(slope, sentences, collate):
    sources, targets = sentences(5), sentences(5, longest=8, seed=2)
    left = slope(collate(sources, left_pad=True, width=20), None, collate(targets))[0]
    right = slope(collate(sources), None, collate(targets))[0]
    real = collate(targets).ne(1)
    torch.testing.assert_close(left[real], right[real], atol=1e-5, rtol=0)


def test_a_scheme_from_outside_decodes_from_the_cache(slope, sentences, collate):
    source, target = collate(sentences(4), left_pad=True), collate(sentences(4, seed=2))
    encoder_out, cache = slope.encoder(source), {}
    full = slope.decoder(target, encoder_out)[0]
    steps = [
        slope.decoder(target[:, : t + 1], encoder_out, incremental_state=cache)[0]
        for t in range(target.size(1))
    ]
    torch.testing.assert_close(torch.cat(steps, dim=1)[target.ne(1)], full[target.ne(1)])
