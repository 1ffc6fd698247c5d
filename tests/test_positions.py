"""Position schemes: their numbers, their limits and what they keep between calls."""

import gc
import json
import math

import pytest
import reference
import torch
from fairseq.modules import LearnedPositionalEmbedding, SinusoidalPositionalEmbedding

from fairseq_rope.positions import POSITIONS, PositionScheme, Stack, token_positions
from fairseq_rope.positions.learned import Learned
from fairseq_rope.positions.rotary import Rotary
from fairseq_rope.positions.sinusoidal import Sinusoidal
from fairseq_rope.rotation import SCALINGS, RotaryScaling

PAD = 1
PADDED = torch.tensor([[5, 6, 7, 8, 2], [PAD, PAD, 5, 6, 2], [5, 6, 2, PAD, PAD], [PAD] * 5])


def phases(scheme, places):
    return scheme(places)[0].own.phases


# Places


@pytest.mark.parametrize("rows", [[0, 1, 2, 3], [0, 2], [1], [3]])
def test_places_count_the_tokens_of_a_row_whatever_its_padding(rows):
    tokens = PADDED[rows]
    places = token_positions(tokens, PAD).expand_as(tokens)
    for row, found in zip(tokens.tolist(), places.tolist()):
        wanted = reference.token_positions(row, PAD)
        assert [p for p, w in zip(found, wanted) if w is not None] == [
            w for w in wanted if w is not None
        ]
        assert min(found) >= 0


def test_rows_share_one_numbering_where_none_begins_with_padding():
    assert token_positions(PADDED[[0, 2]], PAD).tolist() == [[0, 1, 2, 3, 4]]


# Absolute schemes


@pytest.mark.parametrize("width", [4, 7, 32])
def test_sinusoids_equal_the_formula_in_float64(width):
    places = torch.tensor([[0, 1, 2, 50, 3], [1000, 3000, 0, 1, 2]])
    added = Sinusoidal(2, PAD).embed(torch.zeros(2, 5, width, dtype=torch.float64), places)
    for row, found in zip(places.tolist(), added):
        wanted = torch.stack([reference.sinusoid(place, width, PAD) for place in row])
        torch.testing.assert_close(found, wanted, atol=1e-3, rtol=0)
        near = [place <= 50 for place in row]
        torch.testing.assert_close(found[near], wanted[near], atol=1e-5, rtol=0)


def test_sinusoids_equal_fairseq_s():
    stock = SinusoidalPositionalEmbedding(32, PAD, init_size=16)
    tokens = PADDED[:3]
    added = Sinusoidal(2, PAD).embed(torch.zeros(3, 5, 32), token_positions(tokens, PAD))
    visible = tokens.ne(PAD)
    torch.testing.assert_close(added[visible], stock(tokens)[visible], atol=1e-6, rtol=0)


def test_learned_positions_are_numbered_as_fairseq_numbers_them():
    stock = LearnedPositionalEmbedding(5 + PAD + 1, 32, PAD)
    ours = Learned(Stack("encoder", 32, 4, 2, PAD, max_positions=5))
    assert ours.weight.shape == stock.weight.shape
    ours.load_state_dict(stock.state_dict())
    tokens = PADDED[:3]
    added = ours.embed(torch.zeros(3, 5, 32), token_positions(tokens, PAD))
    visible = tokens.ne(PAD)
    assert torch.equal(added[visible], stock(tokens)[visible])


def test_learned_positions_are_drawn_as_fairseq_draws_them():
    weight = Learned(Stack("encoder", 64, 4, 2, PAD, max_positions=500)).weight
    assert not weight[PAD].any()
    assert float(weight[PAD + 1 :].detach().std()) == pytest.approx(64**-0.5, rel=0.05)
    assert float(weight[PAD + 1 :].detach().mean()) == pytest.approx(0, abs=0.005)


# Rotary positions


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_rotary_turns_each_token_by_its_own_place(layout):
    """Per row, per head, along time and not along heads."""
    scheme = Rotary(1, 8, layout=layout)
    places = torch.tensor([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]])
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    turned = scheme(places)[0].own.rotate(x)
    for row in range(2):
        for head in range(3):
            wanted = reference.rotate(
                x[row, head], places[row].tolist(), reference.frequencies(8), layout
            )
            torch.testing.assert_close(turned[row, head], wanted, atol=1e-5, rtol=0)


def test_a_table_belongs_to_its_places_and_not_to_their_number():
    """Five tokens at offset 0, then five at offset 3, by one scheme."""
    scheme = Rotary(1, 8)
    whole = phases(scheme, torch.arange(8)[None])
    assert torch.equal(phases(scheme, torch.arange(5)[None]), whole[..., :5, :])
    assert torch.equal(phases(scheme, torch.arange(3, 8)[None]), whole[..., 3:, :])


def test_values_turn_only_when_asked_and_only_yarn_scales_queries():
    places, x = torch.arange(5)[None], torch.randn(1, 2, 5, 8)
    plain = Rotary(1, 8)(places)[0].own
    assert torch.equal(plain.value(x), x)
    assert torch.equal(plain.query(x), x)
    assert torch.equal(plain.key(x), x)
    turned = Rotary(1, 8, values=True)(places)[0].own
    assert torch.equal(turned.value(x), turned.rotate(x))
    yarn = Rotary(1, 8, scaling=RotaryScaling("yarn", 4.0))(places)[0].own
    torch.testing.assert_close(yarn.query(x), x * (0.1 * math.log(4) + 1) ** 2)


def test_layers_share_one_table():
    positions = Rotary(3, 8)(torch.arange(5)[None])
    assert len(positions) == 3
    assert len({id(position.own.phases) for position in positions}) == 1


def test_a_scheme_is_asked_once_per_stack_and_pass(build, sentences, collate, scheme, monkeypatch):
    model, tokens = build(**scheme), collate(sentences(3))
    asked = []

    def count(forward):
        return lambda *args: asked.append(1) or forward(*args)

    for kind in {type(stack.embed_positions) for stack in (model.encoder, model.decoder)}:
        monkeypatch.setattr(kind, "forward", count(kind.forward))
    encoder_out = model.encoder(tokens)
    assert len(asked) == 1
    cache = {}
    for step in (1, 2, 3):
        asked.clear()
        model.decoder(tokens[:, :step], encoder_out, incremental_state=cache)
        assert len(asked) == 1


def test_rotary_keeps_nothing_in_the_model(build):
    plain, rotary = build(position="none").state_dict(), build().state_dict()
    assert {name: value.shape for name, value in rotary.items() if name != "position_settings"} == {
        name: value.shape for name, value in plain.items() if name != "position_settings"
    }
    scheme = Rotary(2, 8)
    scheme(torch.arange(5)[None])
    assert not list(scheme.buffers()) + list(scheme.parameters())
    assert not any(torch.is_tensor(value) for value in vars(scheme).values())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_table_of_a_reduced_model_is_that_of_float32(dtype):
    places = torch.tensor([[257, 258, 2049, 2050, 1000]])
    table = phases(Rotary(1, 64).to(dtype), places)
    assert torch.equal(table, phases(Rotary(1, 64), places))
    assert not torch.equal(table[..., 0, :], table[..., 1, :])
    assert not torch.equal(table[..., 2, :], table[..., 3, :])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast_does_not_reach_the_table(dtype):
    places = torch.arange(3000)[None]
    with torch.autocast("cpu", dtype):
        inside = phases(Rotary(1, 64), places)
    assert torch.equal(inside, phases(Rotary(1, 64), places))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_casting_a_model_there_and_back_leaves_no_trace(build, sentences, collate, scheme, dtype):
    """Weights that the reduced type can hold, so that all that could be lost is in tables."""
    tokens = collate(sentences(3))
    model = build(**scheme).to(dtype).float()
    wanted = model(tokens, None, tokens)[0]
    after_a_pass = model.to(dtype).float()(tokens, None, tokens)[0]
    before_any = build(**scheme).to(dtype).float().to(dtype).float()(tokens, None, tokens)[0]
    assert torch.equal(after_a_pass, wanted)
    assert torch.equal(before_any, wanted)


def test_tables_carry_no_history_from_one_training_step_to_the_next(
    build, sentences, collate, scheme
):
    model, tokens = build(**scheme).train(), collate(sentences(3))
    for _ in range(2):
        model.zero_grad()
        model(tokens, None, tokens)[0].square().mean().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters())


def test_memory_stays_flat_over_two_hundred_lengths(build, scheme):
    def held():
        gc.collect()
        return sum(x.nbytes for x in gc.get_objects() if issubclass(type(x), torch.Tensor))

    model = build(**scheme)
    with torch.no_grad():
        model(torch.full((1, 5), 7), None, torch.full((1, 5), 7))
        before = held()
        for length in range(1, 201):
            places = torch.arange(length)[None]
            x = model.encoder.embed_positions.embed(torch.zeros(1, length, 32), places)
            assert len(model.encoder.embed_positions(places)) == 2
        del x, places
    assert held() == before


@pytest.mark.parametrize("method", SCALINGS)
def test_scaling_does_not_remember_a_long_request(build, method):
    trained = {"rope_original_positions": 8} if method == "yarn" else {}
    model = build(rope_scaling=method, rope_scaling_factor=4.0, **trained)
    short, long = torch.randint(4, 24, (2, 6)), torch.randint(4, 24, (2, 60))
    first = model(short, None, short)[0]
    model(long, None, long)
    assert torch.equal(model(short, None, short)[0], first)


def test_weights_convert_between_layouts(build, sentences, collate):
    """Rows of the projections change places, biases with them; the logits stay."""
    tokens = collate(sentences(5))
    for options, width in (({}, 8), ({"rope_fraction": 0.5, "rope_cross_attention": True}, 4)):
        model = build(**options).double()
        half = build(seed=2, rope_layout="half", **options).double()
        weights = {k: v for k, v in model.state_dict().items() if k != "position_settings"}
        half.load_state_dict(weights)
        wanted = model(tokens, None, tokens)[0]
        assert (half(tokens, None, tokens)[0] - wanted).abs().max() > 0.1
        half.load_state_dict(reference.interleaved_to_half(weights, heads=4, width=width))
        torch.testing.assert_close(half(tokens, None, tokens)[0], wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "changed, option",
    [
        ({"rope_layout": "half"}, "rope_layout"),
        ({"rope_fraction": 0.5}, "rope_fraction"),
        ({"rope_values": True}, "rope_values"),
        ({"rope_cross_attention": True}, "rope_cross_attention"),
        ({"position": "sinusoidal"}, "position"),
        ({"position": "none"}, "position"),
        ({"decoder_position": "xpos"}, "decoder_position"),
        ({"position": "alibi"}, "position"),
    ],
)
def test_a_checkpoint_of_other_positions_is_refused_by_name(build, changed, option):
    with pytest.raises(ValueError, match=f"the checkpoint was trained with `{option}`="):
        build(**changed).load_state_dict(build().state_dict())
    with pytest.raises(ValueError, match=f"the checkpoint was trained with `{option}`="):
        build().load_state_dict(build(**changed).state_dict())


def test_a_checkpoint_of_another_decoder_is_refused_by_name(build):
    mixed = build(position="rotary", decoder_position="sinusoidal")
    with pytest.raises(ValueError, match="trained with `decoder_position`='rotary'.*'sinusoidal'"):
        mixed.load_state_dict(build().state_dict())
    with pytest.raises(ValueError, match="trained with `decoder_position`='sinusoidal'.*'rotary'"):
        build().load_state_dict(mixed.state_dict())
    build(position="rotary", decoder_position="sinusoidal").load_state_dict(mixed.state_dict())


def test_what_an_older_checkpoint_does_not_know_had_no_effect(build):
    """It names one scheme for both sides and no kernel, as this package's checkpoints once did."""
    weights = build().state_dict()
    settings = json.loads(bytes(weights["position_settings"].int().tolist()))
    del settings["decoder_position"], settings["attention"]
    weights["position_settings"] = torch.tensor(list(json.dumps(settings).encode())).float()
    build().load_state_dict(dict(weights))
    with pytest.raises(ValueError, match="trained with `decoder_position`='rotary'"):
        build(decoder_position="none").load_state_dict(dict(weights))


def test_base_and_scaling_may_change_after_training(build):
    build(rope_scaling="yarn", rope_scaling_factor=2.0).load_state_dict(build().state_dict())
    build(rope_base=500.0).load_state_dict(build().state_dict())


# Length


@pytest.mark.parametrize("length", [7, 8, 9, 24])
def test_no_scheme_but_the_learned_one_has_a_length_limit(build, scheme, length):
    model = build(**scheme, max_source_positions=8, max_target_positions=8)
    tokens = torch.arange(length)[None] % 20 + 4
    if scheme.get("position") == "learned" and length > 8:
        with pytest.raises(ValueError, match=rf"{length} tokens .*`max_source_positions`=8"):
            model.encoder(tokens)
        return
    longer = model(tokens, None, tokens)[0]
    assert torch.isfinite(longer).all()
    # What stands behind a token does not change what was said before it: nothing is clipped.
    shorter = model(tokens, None, tokens[:, :-1])[0]
    torch.testing.assert_close(longer[:, :-1], shorter, atol=1e-5, rtol=0)


def test_only_learned_positions_tell_fairseq_of_a_limit(build, scheme):
    model = build(**scheme, max_source_positions=8, max_target_positions=9)
    limits = model.max_positions()
    learned = scheme.get("position") == "learned"
    assert limits == (8, 9) if learned else min(limits) >= 10**6


def test_a_target_past_the_learned_table_names_its_own_option(build):
    model = build(position="learned", max_target_positions=8)
    tokens = torch.full((1, 9), 7)
    with pytest.raises(ValueError, match=r"9 tokens .*`max_target_positions`=8"):
        model(tokens, None, tokens)


@pytest.mark.parametrize("position", [n for n in POSITIONS if n not in ("learned", "xpos")])
def test_a_source_of_three_thousand_tokens(build, position):
    """Padding before it changes nothing, and its order counts to the end."""
    model = build(position=position, encoder_layers=1, max_source_positions=64)
    tokens, order = torch.randint(4, 24, (1, 3000)), torch.randperm(3000)
    with torch.no_grad():
        plain = model.encoder(tokens)["encoder_out"][0]
        padded = model.encoder(torch.nn.functional.pad(tokens, (5, 0), value=PAD))["encoder_out"][0]
        mixed = model.encoder(tokens[:, order])["encoder_out"][0][order.argsort()]
        backwards = model.encoder(tokens.flip(1))["encoder_out"][0].flip(0)
    assert torch.isfinite(plain).all()
    torch.testing.assert_close(padded[5:], plain, atol=1e-4, rtol=0)
    difference, turned = ((x - plain)[-100:].abs().max() for x in (mixed, backwards))
    assert difference < 1e-5 if position == "none" else difference > 0.1
    # In the encoder ALiBi sees how far a token is, and not on which side.
    assert turned < 1e-5 if position in ("none", "alibi") else turned > 0.1


def test_a_target_of_three_thousand_tokens(build, sentences, collate, scheme):
    """Each half of it, from the cache of what stands before, is as in the whole."""
    if scheme.get("position") == "learned":
        pytest.skip("has a table of places")
    model = build(**scheme, decoder_layers=1)
    target = torch.randint(4, 24, (1, 3000))
    with torch.no_grad():
        encoder_out, cache = model.encoder(collate(sentences(1))), {}
        whole = model.decoder(target, encoder_out)[0]
        model.decoder(target[:, :1500], encoder_out, incremental_state=cache)
        cached = model.decoder(target, encoder_out, incremental_state=cache)[0]
        first = model.decoder(target[:, :1500], encoder_out)[0]
    assert torch.isfinite(whole).all()
    torch.testing.assert_close(whole[:, :1500], first, atol=1e-4, rtol=0)
    torch.testing.assert_close(cached, whole[:, 1500:], atol=1e-4, rtol=0)


def test_without_positions_the_encoder_is_blind_to_order(build):
    model = build(position="none")
    tokens = torch.tensor([[4, 5, 6, 7, 8, 2]])
    order = [3, 1, 4, 0, 2, 5]
    plain = model.encoder(tokens)["encoder_out"][0]
    mixed = model.encoder(tokens[:, order])["encoder_out"][0]
    torch.testing.assert_close(mixed, plain[order], atol=1e-5, rtol=0)


# Mistakes


@pytest.mark.parametrize(
    "options, message",
    [
        ({"position": "cosine"}, r"`position` must be one of rotary, .*none, but is 'cosine'"),
        ({"attention": "flash"}, r"`attention` must be one of softmax.*, but is 'flash'"),
        (
            {"encoder_embed_dim": 36},
            r"even head size.*`encoder_embed_dim`=36.*`encoder_attention_heads`=4.*gives 9.*=40",
        ),
        ({"decoder_embed_dim": 36}, r"`decoder_embed_dim`=36 .*decoder_embed_dim=40"),
        ({"encoder_attention_heads": 5}, r"`encoder_embed_dim`=32 must be a multiple .*=5.* 30"),
        ({"rope_fraction": 0.4}, r"`rope_fraction`=0.4 of a head of 8 gives 3.2 .* 0.5 \(4"),
        ({"rope_fraction": 0.375}, r"`rope_fraction`=0.375 .* gives 3 .*nearest fraction is"),
        ({"rope_fraction": 0.0}, r"`rope_fraction` must be above 0 and at most 1, but is 0.0"),
        ({"rope_fraction": 1.5}, r"`rope_fraction` must be above 0 and at most 1, but is 1.5"),
        ({"rope_layout": "neox"}, r"`rope_layout` must be one of .*, but is 'neox'"),
        ({"rope_base": 1.0}, r"`rope_base` must be a number above 1, but is 1.0"),
        ({"rope_base": float("inf")}, r"`rope_base` must be a number above 1, but is inf"),
        ({"rope_scaling": "yarn"}, r"`rope_scaling`='yarn' needs `rope_scaling_factor`"),
        ({"rope_scaling_factor": 4.0}, r"`rope_scaling_factor`=4.0 has no effect"),
        ({"rope_scaling": "dynamic", "rope_scaling_factor": 2.0}, r"must be one of.*'dynamic'"),
        (
            {"rope_scaling": "linear", "rope_scaling_factor": 0.5},
            r"`rope_scaling_factor`=0.5.*least 1",
        ),
        (
            {"position": "none", "rope_cross_attention": True},
            r"`rope_cross_attention`=True .*`position`='rotary' or 'xpos' only, .* is 'none'",
        ),
        ({"position": "learned", "rope_base": 500.0}, r"`rope_base`=500.0 has an effect with"),
        ({"position": "learned", "rope_layout": "half"}, r"`rope_layout`=half has an effect with"),
        ({"rope_original_positions": 9}, r"`rope_original_positions`=9 .*'yarn' only, .*'none'"),
        (
            {"rope_scaling": "ntk", "rope_scaling_factor": 1e300},
            r"`rope_scaling`='ntk', `rope_scaling_factor`=1e\+300",
        ),
        ({"encoder_ffn_embed_dim": 0}, r"`encoder_ffn_embed_dim` must be at least 1, but is 0"),
        ({"decoder_embed_dim": 0}, r"`decoder_embed_dim` must be at least 1, but is 0"),
        ({"max_source_positions": 0}, r"`max_source_positions` must be at least 1, but is 0"),
        (
            {"position": "sinusoidal", "rope_scaling": "ntk", "rope_scaling_factor": 2.0},
            r"`rope_scaling`=ntk has an effect with `position`='rotary' only",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_remedy(build, options, message):
    with pytest.raises(ValueError, match=message):
        build(**options)


@pytest.mark.parametrize("head, share, width", [(24, 1 / 3, 8), (96, 1 / 3, 32), (100, 0.14, 14)])
def test_the_share_that_a_message_recommends_is_accepted(build, head, share, width):
    sizes = {"encoder_embed_dim": 4 * head, "decoder_embed_dim": 4 * head}
    with pytest.raises(ValueError, match="nearest fraction is") as refused:
        build(rope_fraction=share - 0.004, **sizes)
    recommended = float(str(refused.value).split("nearest fraction is ")[1].split()[0])
    assert recommended == pytest.approx(share, abs=1e-6)
    assert build(rope_fraction=recommended, **sizes).encoder.embed_positions.width == width


def test_the_decoder_may_have_a_scheme_of_its_own(build, sentences, collate):
    """It is the one that its name says: each side's output is that of a model of one scheme."""
    source, target = collate(sentences(3)), collate(sentences(3, seed=2))
    mixed = build(position="rotary", decoder_position="sinusoidal")
    rotary, sinusoidal = build(), build(position="sinusoidal")
    encoded = mixed.encoder(source)
    assert torch.equal(encoded["encoder_out"][0], rotary.encoder(source)["encoder_out"][0])
    assert torch.equal(mixed.decoder(target, encoded)[0], sinusoidal.decoder(target, encoded)[0])
    assert not torch.equal(mixed.decoder(target, encoded)[0], rotary.decoder(target, encoded)[0])


def test_an_option_of_either_side_s_scheme_has_an_effect(build):
    build(position="none", decoder_position="rotary", rope_base=500.0)
    build(position="rotary", decoder_position="none", rope_base=500.0)


def test_the_scheme_none_is_the_contract_itself():
    assert POSITIONS["none"] is PositionScheme
