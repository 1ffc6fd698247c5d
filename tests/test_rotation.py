"""Rotation against explicit matrices, other people's formulas and its own promises."""

import math

import pytest
import reference
import torch

from fairseq_rope.rotation import (
    LAYOUTS,
    SCALINGS,
    RotaryScaling,
    rotary_angles,
    rotary_frequencies,
    rotary_phases,
    rotate,
    turn,
)

PLACES = [0, 1, 2, 5, 3, 40, 7]  # neither in order nor without gaps
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def angles_of(places, dim):
    return rotary_angles(torch.as_tensor(places), rotary_frequencies(dim))


@layouts
@pytest.mark.parametrize("width", [2, 6, 8])
def test_rotation_and_gradient_equal_those_of_explicit_matrices(layout, width):
    x = torch.randn(3, len(PLACES), 8, dtype=torch.float64, requires_grad=True)
    wanted = torch.stack(
        [reference.rotate(row, PLACES, reference.frequencies(width), layout) for row in x]
    )
    turned = rotate(x, angles_of(PLACES, width), layout)
    torch.testing.assert_close(turned, wanted, atol=2e-5, rtol=0)
    weights = torch.randn_like(x)
    (gradient,) = torch.autograd.grad((turned * weights).sum(), x)
    (wanted_gradient,) = torch.autograd.grad((wanted * weights).sum(), x)
    torch.testing.assert_close(gradient, wanted_gradient, atol=2e-5, rtol=0)


def test_interleaved_equals_the_formula_of_hugging_face_roformer():
    """x * cos + swapped(x) * sin, where swapped(x) = (-x1, x0, -x3, x2, ...) (eq. 34)."""
    x = torch.randn(2, 4, 10, 16)
    swapped = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
    exponents = 2 * torch.div(torch.arange(16), 2, rounding_mode="floor") / 16
    angles = torch.arange(10.0)[:, None] / 10000**exponents
    wanted = x * angles.cos() + swapped * angles.sin()
    torch.testing.assert_close(rotate(x, angles_of(range(10), 16)), wanted, atol=1e-5, rtol=0)


def test_half_equals_the_rotation_that_fairseq_has_for_speech():
    foreign = pytest.importorskip("fairseq.modules.rotary_positional_embedding")
    x = torch.randn(10, 2, 4, 16)  # (time, batch, heads, dim)
    cos, sin = foreign.RotaryPositionalEmbedding(16)(x, seq_len=10)
    wanted, _ = foreign.apply_rotary_pos_emb(x, x, cos, sin)
    angles = angles_of(range(10), 16)[:, None, None]
    torch.testing.assert_close(rotate(x, angles, "half"), wanted, atol=1e-5, rtol=0)


@layouts
def test_the_norm_of_every_pair_is_kept(layout):
    x = torch.randn(50, 16)
    turned = rotate(x, angles_of(torch.arange(50) * 31, 16), layout)
    for a, b in reference.pairs(16, layout):
        torch.testing.assert_close(turned[:, [a, b]].norm(dim=1), x[:, [a, b]].norm(dim=1))


@layouts
def test_the_score_depends_on_the_distance_only(layout):
    q, k = torch.randn(2, 16, dtype=torch.float64)

    def score(m, n):
        turned_q, turned_k = rotate(torch.stack((q, k)), angles_of([m, n], 16), layout)
        return float(turned_q @ turned_k)

    assert score(5, 2) != pytest.approx(score(2, 5), abs=1e-2)
    for shift in (1, 17, 500):
        assert score(5 + shift, 2 + shift) == pytest.approx(score(5, 2), abs=1e-3)


@layouts
def test_at_place_zero_nothing_turns_and_back_is_the_inverse_of_forth(layout):
    x = torch.randn(len(PLACES), 16)
    assert torch.equal(rotate(x, torch.zeros(16 // 2), layout), x)
    angles = angles_of(PLACES, 16)
    torch.testing.assert_close(rotate(rotate(x, angles, layout), -angles, layout), x)


def test_the_two_layouts_differ_by_a_permutation():
    x, angles = torch.randn(7, 16), angles_of(PLACES, 16)
    order = list(range(0, 16, 2)) + list(range(1, 16, 2))
    assert torch.equal(rotate(x, angles)[:, order], rotate(x[:, order], angles, "half"))


@layouts
@pytest.mark.parametrize("columns", [slice(0, 6), slice(1, 7), slice(0, 4)])
def test_any_slice_of_memory_turns_like_its_copy(layout, columns):
    x = torch.randn(5, 7)[:, columns]
    angles = angles_of(range(5), 4)
    torch.testing.assert_close(rotate(x, angles, layout), rotate(x.clone(), angles, layout))


@layouts
@pytest.mark.parametrize("width", [4, 6])
def test_gradcheck(layout, width):
    x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    angles = angles_of([0, 1, 9], width).double()
    assert torch.autograd.gradcheck(lambda y: rotate(y, angles, layout), x)


@layouts
@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_backward_pass_keeps_no_tensor_but_the_phases(layout, width, dtype):
    x = torch.randn(5, 7, 16, dtype=dtype, requires_grad=True)
    phases = rotary_phases(angles_of(PLACES, width))
    saved = []

    def keep(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        turned = turn(x, phases, layout)
    assert {tensor.untyped_storage().data_ptr() for tensor in saved} == {
        phases.untyped_storage().data_ptr()
    }
    turned.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@layouts
def test_reduced_precision_is_rounded_once_at_the_end(dtype, layout):
    x = torch.randn(300, 16).to(dtype)
    turned = rotate(x, angles_of(range(300), 16), layout)
    wanted = reference.rotate(x.double(), range(300), reference.frequencies(16), layout)
    assert turned.dtype == dtype
    torch.testing.assert_close(turned.double(), wanted, rtol=torch.finfo(dtype).eps / 2, atol=1e-4)


@pytest.mark.parametrize("place", [1, 257, 1000, 2049, 3000])
def test_phases_are_within_a_thousandth_of_a_radian_of_float64(place):
    phases = rotary_phases(angles_of([place], 64))[0].to(torch.complex128)
    for phase, theta in zip(phases.tolist(), reference.frequencies(64)):
        assert abs(phase - complex(math.cos(place * theta), math.sin(place * theta))) < 1e-3


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("place", [257, 2049])
def test_neighbouring_places_differ_whatever_the_type_they_come_in(dtype, place):
    """257 and 258 are one number in bfloat16, 2049 and 2050 are one in float16."""
    x = torch.ones(2, 16, dtype=dtype)
    here, there = rotate(x, angles_of([place, place + 1], 16))
    assert (here - there).abs().max() > 0.1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_does_not_reach_the_angles(dtype):
    outside = angles_of(range(3000), 64)
    with torch.autocast("cpu", dtype):
        inside = angles_of(range(3000), 64)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)


def test_angles_belong_to_the_place_not_to_the_row_or_the_call():
    table = angles_of(range(8), 16)
    assert torch.equal(angles_of(range(5), 16), table[:5])
    assert torch.equal(angles_of(range(3, 8), 16), table[3:])
    assert torch.equal(angles_of([[3, 1], [0, 7]], 16), table[torch.tensor([[3, 1], [0, 7]])])
    assert angles_of(torch.empty(2, 0, dtype=torch.long), 16).shape == (2, 0, 8)


def test_the_base_sets_the_slowest_frequency():
    torch.testing.assert_close(
        rotary_frequencies(64, 500.0).double(),
        torch.tensor(reference.frequencies(64, 500.0), dtype=torch.float64),
        rtol=1e-6,
        atol=0,
    )


def test_long_term_decay_has_the_figures_of_the_paper_s_bound():
    """Mean of |S_i| over i, S_i the sum of the first i phases at a distance (section 3.4.3)."""
    wanted = {
        0: 16.5,
        1: 15.9478,
        2: 14.4845,
        4: 11.1427,
        8: 9.9236,
        16: 7.6497,
        32: 7.6529,
        64: 5.6999,
        128: 4.7487,
        256: 3.8436,
    }
    phases = rotary_phases(angles_of(list(wanted), 64))
    decay = phases.cumsum(dim=-1).abs().mean(dim=-1)
    assert decay.tolist() == pytest.approx(list(wanted.values()), abs=1e-4)


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
@pytest.mark.parametrize("dim", [4, 16, 64])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_scaled_frequencies_equal_independent_formulas(factor, dim, base):
    wanted = {
        "linear": reference.linear_frequencies(dim, factor, base),
        "ntk": reference.ntk_frequencies(dim, factor, base),
        "yarn": reference.yarn_frequencies(dim, factor, 200, base),
    }
    assert set(wanted) == set(SCALINGS)
    for method, thetas in wanted.items():
        scaling = RotaryScaling(method, factor, original_positions=200)
        assert rotary_frequencies(dim, base, scaling).tolist() == pytest.approx(thetas, rel=1e-6)


@pytest.mark.parametrize("method", SCALINGS)
def test_scaling_by_one_is_plain_rope_bit_for_bit(method):
    scaling = RotaryScaling(method, 1.0, original_positions=200)
    assert torch.equal(rotary_frequencies(64, scaling=scaling), rotary_frequencies(64))
    assert scaling.logit_scale == 1.0


def test_ntk_keeps_the_fastest_pair_and_divides_the_slowest_by_the_factor():
    plain = rotary_frequencies(64)
    scaled = rotary_frequencies(64, scaling=RotaryScaling("ntk", 4.0))
    assert scaled[0] == plain[0]
    assert float(plain[-1] / scaled[-1]) == pytest.approx(4.0)


def test_yarn_keeps_fast_pairs_and_divides_slow_ones():
    plain = rotary_frequencies(64)
    scaled = rotary_frequencies(64, scaling=RotaryScaling("yarn", 4.0, original_positions=512))
    turns = 512 * plain / (2 * math.pi)
    assert torch.equal(scaled[turns > 32], plain[turns > 32])
    assert torch.equal(scaled[turns < 1], plain[turns < 1] / 4)
    assert ((turns > 1) & (turns < 32)).any()


@pytest.mark.parametrize("factor", [2, 4, 8])
def test_only_yarn_sharpens_attention(factor):
    """Queries and keys are each multiplied by 0.1 ln(s) + 1 (YaRN paper, section 3.4)."""
    scale = RotaryScaling("yarn", factor).logit_scale
    assert scale == pytest.approx((0.1 * math.log(factor) + 1) ** 2)
    assert RotaryScaling("linear", factor).logit_scale == 1.0
    assert RotaryScaling("ntk", factor).logit_scale == 1.0


@pytest.mark.parametrize(
    "mistake, message",
    [
        (lambda: rotary_frequencies(7), r"`dim` must be a positive even number, but is 7"),
        (lambda: rotary_frequencies(0), r"`dim` must be a positive even number, but is 0"),
        (lambda: rotate(torch.ones(4), torch.ones(3)), r"6 dimensions cannot turn .* of 4"),
        (lambda: rotate(torch.ones(4), torch.ones(2), "xpos"), r"`layout` .*half, but is 'xpos'"),
        (
            lambda: RotaryScaling("dynamic", 2.0),
            r"`method` must be one of .*yarn.*, but is 'dynamic'",
        ),
        (
            lambda: RotaryScaling("yarn", 0.5),
            r"`factor` must be a number of at least 1, but is 0.5",
        ),
        (lambda: RotaryScaling("yarn", math.nan), r"`factor` must be a number .*, but is nan"),
        (lambda: RotaryScaling("yarn", math.inf), r"`factor` must be a number .*, but is inf"),
        (lambda: RotaryScaling("yarn", 2.0, 0), r"`original_positions` must be >= 1, but is 0"),
        (
            lambda: rotary_frequencies(2, scaling=RotaryScaling("ntk", 2.0)),
            r"ntk scaling needs at least 4 rotated dimensions",
        ),
    ],
)
def test_a_mistake_is_named(mistake, message):
    with pytest.raises(ValueError, match=message):
        mistake()
