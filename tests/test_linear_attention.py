"""RoFormer's linear attention against loops, its state, and what it keeps and refuses."""

import functools

import pytest
import reference
import torch

from fairseq_rope.attention import FEATURE_MAPS, AttentionMask, LinearKernel
from fairseq_rope.attention.feature_maps import orthogonal_gaussian
from fairseq_rope.positions import AttentionPosition, PositionScheme
from fairseq_rope.positions.rotary import Rotary

HEADS, HEAD_DIM, LENGTH = 2, 8, 10
PADDING = {"none": [0, 0], "left": [3, 0], "right": [0, -3], "whole row": [0, LENGTH]}
feature_maps = pytest.mark.parametrize("feature_map", FEATURE_MAPS)
causality = pytest.mark.parametrize("causal", [False, True])


def make(feature_map="elu", chunk=64):
    torch.manual_seed(1)
    return LinearKernel(FEATURE_MAPS[feature_map](HEAD_DIM), chunk)


def features(kernel, feature_map):
    """The slow twin of the kernel's feature map: for keys, and for queries."""
    if feature_map == "favor":
        projection = kernel.feature_map.projection.double()
        twin = functools.partial(reference.favor_features, projection=projection)
    else:
        twin = getattr(reference, f"{feature_map}_features")
    share = 1e-4 if feature_map in ("exp", "favor") else 0
    return {"features": twin, "query_features": reference.with_a_share(twin, share)}


def padded(side, length=LENGTH):
    """(2, T) bool, true at padding: so many tokens from the left, or from the right if negative."""
    columns = torch.arange(length)
    rows = [columns < n if n >= 0 else columns >= length + n for n in PADDING[side]]
    return torch.stack(rows)


def draw(length=LENGTH, rows=2, dtype=torch.float32):
    """Queries, keys and values; each (B, H, T, D)."""
    draw = torch.Generator().manual_seed(2)
    return tuple(torch.randn(3, rows, HEADS, length, HEAD_DIM, generator=draw).to(dtype).unbind())


def attend(kernel, q, k, v, causal, padding=None, shift=0, scheme=None, state=None, past=0):
    """The kernel's output for tokens that stand behind `past` others and begin at place `shift`."""
    scheme = scheme or Rotary(1, HEAD_DIM)
    places = shift + torch.arange(past + q.size(2))[None]
    position = scheme(places[:, past:])[0].own
    mask = AttentionMask(places[:, past:], places, padding, causal)
    return kernel(q, k, v, position, position, mask, state or {})


# Equation 19


@feature_maps
@pytest.mark.parametrize("side", PADDING)
@pytest.mark.parametrize(
    "causal, chunk", [(False, 64), (True, 1), (True, 7), (True, 64), (True, 1000)]
)
def test_output_and_gradients_equal_the_loops(feature_map, causal, side, chunk):
    kernel, padding = make(feature_map, chunk), padded(side)
    inputs = [x.requires_grad_() for x in draw()]
    found = attend(kernel, *inputs, causal, padding if padding.any() else None).values
    exact = [x.detach().double().requires_grad_() for x in inputs]
    thetas = reference.frequencies(HEAD_DIM)
    rows = []
    for row in range(2):
        real = (~padding[row]).tolist()
        visible = [
            [real[s] and (s <= t or not causal) for s in range(LENGTH)] for t in range(LENGTH)
        ]
        for head in range(HEADS):
            rows.append(
                reference.linear_attention(
                    *(x[row, head] for x in exact),
                    visible,
                    turn=lambda x: reference.rotate(x, range(LENGTH), thetas),
                    **features(kernel, feature_map),
                )
            )
    wanted = torch.stack(rows).view(2, HEADS, LENGTH, HEAD_DIM)
    torch.testing.assert_close(found.double(), wanted, atol=1e-5, rtol=1e-5)
    weight = torch.randn(found.shape, generator=torch.Generator().manual_seed(3))
    gradients = torch.autograd.grad((found * weight).sum(), inputs)
    for gradient, exact_one in zip(gradients, torch.autograd.grad((wanted * weight).sum(), exact)):
        torch.testing.assert_close(gradient.double(), exact_one, atol=1e-5, rtol=1e-5)


@feature_maps
@pytest.mark.parametrize("chunk", [1, 7, 64])
def test_chunks_change_nothing_in_longer_texts(feature_map, chunk):
    inputs = draw(300)
    wanted = attend(make(feature_map, 300), *inputs, causal=True)
    found = attend(make(feature_map, chunk), *inputs, causal=True)
    torch.testing.assert_close(found.values, wanted.values, atol=1e-5, rtol=1e-5)
    for name in ("values", "keys"):
        sums = wanted.state[name]
        tolerance = 1e-5 * float(sums.abs().max())
        torch.testing.assert_close(found.state[name], sums, atol=tolerance, rtol=0)


@feature_maps
@causality
def test_output_depends_on_distances_only(feature_map, causal):
    kernel, inputs = make(feature_map), draw()
    wanted = attend(kernel, *inputs, causal).values
    moved = attend(kernel, *inputs, causal, shift=100).values
    torch.testing.assert_close(moved, wanted, atol=1e-4, rtol=1e-4)
    unturned = attend(kernel, *inputs, causal, scheme=PositionScheme(1)).values
    assert (unturned - wanted).abs().max() > 0.05


def test_the_rotation_is_in_the_numerator_alone():
    """With values of one, softmax attention gives one; here the turned weights sum to less."""
    q, k, v = draw()
    kernel = make()
    unturned = attend(kernel, q, k, torch.ones_like(v), False, scheme=PositionScheme(1)).values
    torch.testing.assert_close(unturned, torch.ones_like(v), atol=1e-5, rtol=0)
    turned = attend(kernel, q, k, torch.ones_like(v), False).values
    assert (turned < 0.999).all()


def test_favor_approximates_softmax_attention():
    """The mean of phi(q)^T phi(k) over many draws is exp(q^T k / sqrt(D))."""
    q, k = 0.5 * torch.randn(2, HEAD_DIM, dtype=torch.float64)
    products = []
    for _ in range(4000):
        projection = orthogonal_gaussian(HEAD_DIM).double()
        phi_q, phi_k = (reference.favor_features(x, projection) for x in (q, k))
        products.append(phi_q @ phi_k)
    products = torch.stack(products)
    error = float(products.std()) / 4000**0.5
    assert error < 0.02
    wanted = float(torch.exp(q @ k / HEAD_DIM**0.5))
    assert float(products.mean()) == pytest.approx(wanted, abs=3 * error)


def test_favor_s_directions_are_orthogonal_and_as_long_as_normal_ones():
    projection = orthogonal_gaussian(256)
    lengths = projection.norm(dim=1)
    cosines = (projection @ projection.T) / lengths[:, None] / lengths
    torch.testing.assert_close(cosines, torch.eye(256), atol=1e-5, rtol=0)
    assert float(lengths.square().mean()) == pytest.approx(256, rel=0.03)
    assert float(lengths.std()) == pytest.approx(0.5**0.5, rel=0.2)  # of a chi distribution


# The state


@feature_maps
@pytest.mark.parametrize("steps", [[1] * LENGTH, [4, 1, 5], [1, 9], [3, 3, 3, 1]])
def test_steps_from_the_state_equal_the_whole(feature_map, steps):
    """Left padding too: the mask that a step gets is for all keys, those of earlier steps first."""
    kernel, inputs, padding = make(feature_map, chunk=2), draw(), padded("left")
    wanted = attend(kernel, *inputs, True, padding)
    found, state, past = [], {}, 0
    for size in steps:
        new = [x[:, :, past : past + size] for x in inputs]
        assert kernel.length(state) == past
        out = attend(kernel, *new, True, padding[:, : past + size], state=state, past=past)
        found.append(out.values)
        state, past = out.state, past + size
    torch.testing.assert_close(torch.cat(found, dim=2), wanted.values, atol=1e-5, rtol=1e-5)
    assert kernel.length(state) == kernel.length(wanted.state) == LENGTH


def test_the_state_has_one_size_and_float32_in_any_type():
    kernel = make()
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for length in (1, 500):
            state = attend(kernel, *draw(length, dtype=dtype), True).state
            assert state["values"].shape == (2, HEADS, HEAD_DIM, HEAD_DIM)
            assert state["keys"].shape == (2, HEADS, HEAD_DIM)
            assert {state["values"].dtype, state["keys"].dtype} == {torch.float32}
            assert state["length"] == length
    # No view either that keeps the sums of earlier chunks alive.
    assert state["values"].untyped_storage().nbytes() == state["values"].nbytes
    assert state["keys"].untyped_storage().nbytes() == state["keys"].nbytes


def test_reordered_rows_go_on_from_their_new_row():
    kernel, inputs, order = make(), draw(rows=4), torch.tensor([2, 2, 0])
    first, last = ([x[:, :, part] for x in inputs] for part in (slice(6), slice(6, None)))
    state = kernel.reorder(attend(kernel, *first, True).state, order)
    assert kernel.length(state) == 6
    found = attend(kernel, *(x[order] for x in last), True, state=state, past=6).values
    wanted = attend(kernel, *(x[order] for x in inputs), True).values[:, :, 6:]
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


# Precision


@feature_maps
@causality
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced_inputs_are_summed_in_float32(feature_map, causal, dtype):
    """The output is that of float32 for the same inputs, rounded once, under autocast too."""
    kernel, inputs = make(feature_map), draw(3000, dtype=dtype)
    wanted = attend(kernel, *(x.float() for x in inputs), causal).values
    with torch.autocast("cpu", torch.bfloat16):
        found = attend(kernel, *inputs, causal).values
    assert found.dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(found.float(), wanted, atol=eps, rtol=eps)


@feature_maps
@causality
@pytest.mark.parametrize("scale", [0.0, 30.0, 1e4])
def test_large_inputs_have_finite_output_and_gradients(feature_map, causal, scale):
    """Zeros; and far beyond what an exponential holds, with signs that leave nothing in common."""
    q, k, _ = ((scale * x).requires_grad_() for x in draw(100))
    v = draw(100)[2].requires_grad_()
    for pair in ((q, k), (q.abs(), -k.abs()), (-q.abs(), k.abs()), (-q.abs(), -k.abs())):
        out = attend(make(feature_map), *pair, v, causal).values
        assert torch.isfinite(out).all()
        assert all(torch.isfinite(x).all() for x in torch.autograd.grad(out.sum(), (q, k, v)))


@feature_maps
@causality
def test_rows_of_padding_alone_have_finite_gradients_and_give_none(feature_map, causal):
    inputs = [x.requires_grad_() for x in draw()]
    out = attend(make(feature_map), *inputs, causal, padded("whole row")).values
    assert not out[1].any()
    for gradient in torch.autograd.grad(out.square().sum(), inputs):
        assert torch.isfinite(gradient).all()
        assert gradient[0].any() and not gradient[1].any()


# What it refuses and what a checkpoint says


@pytest.mark.parametrize("options", [{"need_weights": True}, {"dropout": 0.1}])
def test_weights_are_refused_by_name(options):
    places = torch.arange(LENGTH)[None]
    none, mask = AttentionPosition(), AttentionMask(places, places)
    with pytest.raises(ValueError, match="`attention`='linear' computes no weights"):
        make()(*draw(), none, none, mask, {}, **options)


def test_score_biases_and_foreign_keys_are_refused_by_name():
    class Biased(AttentionPosition):
        def bias(self, q, query_places, key_places):
            return q.new_zeros(1)

    places, (q, k, v) = torch.arange(LENGTH)[None], draw()
    none, mask = AttentionPosition(), AttentionMask(places, places)
    with pytest.raises(ValueError, match="`attention`='linear' computes no score"):
        make()(q, k, v, Biased(), none, mask, {})
    for keys, values in ((None, None), (k[:1], v[:1]), (k[:, :, :4], v[:, :, :4])):
        with pytest.raises(ValueError, match="`attention`='linear' is for self-attention"):
            make()(q, keys, values, none, none, mask, {})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"attention_dropout": 0.1}, r"`attention_dropout`=0.1 drops .*`attention`='linear'.*out"),
        ({"linear_feature_map": "cosine"}, r"`linear_feature_map` must be one of elu, relu, exp,"),
        (
            {"attention": "softmax", "linear_feature_map": "relu"},
            r"`linear_feature_map`=relu has an effect with `attention`='linear' only.*'softmax'",
        ),
        (
            {"rope_scaling": "yarn", "rope_scaling_factor": 4.0},
            r"`rope_scaling`='yarn' in the encoder .*`attention`='linear' does not compute",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_remedy(build, options, message):
    with pytest.raises(ValueError, match=message):
        build(**{"attention": "linear", **options})


@pytest.mark.parametrize(
    "trained, used, option",
    [
        ({}, {"attention": "linear"}, "attention"),
        ({"attention": "linear"}, {}, "attention"),
        (
            {"attention": "linear"},
            {"attention": "linear", "linear_feature_map": "relu"},
            "linear_feature_map",
        ),
        (
            {"attention": "linear", "linear_feature_map": "favor"},
            {"attention": "linear"},
            "linear_feature_map",
        ),
    ],
)
def test_a_checkpoint_of_another_attention_is_refused_by_name(build, trained, used, option):
    with pytest.raises(ValueError, match=f"the checkpoint was trained with `{option}`="):
        build(**used).load_state_dict(build(**trained).state_dict())


@feature_maps
def test_a_reloaded_model_gives_the_same_logits(build, sentences, collate, feature_map):
    """favor's projection is drawn anew in each model, and comes from the checkpoint."""
    options = {"attention": "linear", "linear_feature_map": feature_map}
    trained, loaded = build(**options), build(seed=2, **options)
    source, target = collate(sentences(3)), collate(sentences(3, seed=2))
    loaded.load_state_dict(trained.state_dict())
    wanted = trained(source, None, target)[0]
    assert torch.equal(loaded(source, None, target)[0], wanted)
    drawn = [name for name in trained.state_dict() if name.endswith("projection")]
    kernels = [name for name in drawn if "kernel" in name]
    assert len(kernels) == (4 if feature_map == "favor" else 0)


@feature_maps
def test_full_context_lets_every_target_token_see_all(build, feature_map):
    """The decoder's self-attention without its causal mask, and with padding on the right."""
    model = build(attention="linear", linear_feature_map=feature_map)
    source, target = torch.tensor([[4, 5, 2]]), torch.tensor([[2, 7, 8, 9]])
    other, longer = torch.tensor([[2, 7, 8, 6]]), torch.tensor([[2, 7, 8, 9, 1, 1]])

    def first(tokens, full):
        encoder_out = model.encoder(source)
        return model.decoder(tokens, encoder_out, full_context_alignment=full)[0][:, :3]

    assert (first(other, True) - first(target, True)).abs().max() > 1e-3
    torch.testing.assert_close(first(other, False), first(target, False), atol=1e-6, rtol=0)
    torch.testing.assert_close(first(longer, True), first(target, True), atol=1e-5, rtol=0)
