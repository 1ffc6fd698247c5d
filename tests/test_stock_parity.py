"""With classic positions the model is fairseq's own transformer."""

import itertools
from argparse import Namespace

import pytest
import torch
from conftest import TINY
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.sequence_generator import SequenceGenerator
from torch.nn import functional as F

from fairseq_rope.models import RoFormerConfig, RoFormerTransformer

VARIANTS = {
    "plain": {},
    "pre-norm": {"encoder_normalize_before": True, "decoder_normalize_before": True},
    "embedding norm": {"layernorm_embedding": True, "no_scale_embedding": True},
    "shared embeddings": {"share_all_embeddings": True},
    "shared output": {"share_decoder_input_output_embed": True},
    "unequal widths": {
        "encoder_embed_dim": 48,
        "encoder_layers": 3,
        "encoder_ffn_embed_dim": 40,
        "activation_fn": "gelu",
    },
}


pytestmark = pytest.mark.filterwarnings("ignore:Support for mismatched key_padding_mask")


@pytest.fixture(params=itertools.product(["sinusoidal", "learned"], VARIANTS), ids="-".join)
def options(request):
    position, variant = request.param
    return {"position": position, **VARIANTS[variant]}


@pytest.fixture
def twins(build, task):
    """twins(options): fairseq's transformer, and ours with its weights, loaded strictly."""

    def make(options, seed=1):
        learned = options["position"] == "learned"
        args = Namespace(
            **{**TINY, "dropout": 0.0, **options},
            encoder_learned_pos=learned,
            decoder_learned_pos=learned,
            max_source_positions=64,
            max_target_positions=64,
        )
        base_architecture(args)
        torch.manual_seed(seed)
        stock = TransformerModel.build_model(args, task).eval()
        with torch.no_grad():
            for name, weight in stock.named_parameters():
                if name.endswith(("q_proj.weight", "k_proj.weight")):
                    weight.mul_(2)
        ours = build(**options, max_source_positions=64, max_target_positions=64, seed=2)
        ours.load_state_dict(stock.state_dict(), strict=True)
        return stock, ours

    return make


@pytest.fixture
def batch(sentences, collate):
    source = collate(sentences(6), left_pad=True)
    target = collate(sentences(6, longest=9, seed=2))
    return {"src_tokens": source, "src_lengths": source.ne(1).sum(1), "prev_output_tokens": target}


def assert_equal(found, wanted):
    torch.testing.assert_close(
        found, wanted, rtol=0, atol=1e-6 * float(wanted.detach().abs().max())
    )


def test_logits_equal_fairseq_s(twins, options, batch):
    stock, ours = twins(options)
    real = batch["prev_output_tokens"].ne(1)
    assert_equal(ours(**batch)[0][real], stock(**batch)[0][real])


def test_encoder_output_and_all_hidden_states_equal_fairseq_s(twins, options, batch):
    stock, ours = twins(options)
    source, target = batch["src_tokens"].ne(1).T, batch["prev_output_tokens"].ne(1).T
    encoders = [
        m.encoder(batch["src_tokens"], None, return_all_hiddens=True) for m in (ours, stock)
    ]
    found, wanted = ([e["encoder_out"][0], *e["encoder_states"]] for e in encoders)
    assert len(found) == len(wanted) == len(ours.encoder.layers) + 2
    for x, y in zip(found, wanted):
        assert x.shape == y.shape
        assert_equal(x[source], y[source])
    inner = [m(**batch)[1]["inner_states"] for m in (ours, stock)]
    assert len(inner[1]) == len(ours.decoder.layers) + 1
    hidden = ours(**batch, return_all_hiddens=True)[1]["inner_states"]
    assert len(hidden) == len(inner[1])
    for x, y in zip(hidden, inner[1]):
        assert x.shape == y.shape
        assert_equal(x[target], y[target])


@pytest.mark.parametrize("layer, heads", [(None, None), (0, None), (1, 1), (0, 3)])
def test_attention_to_the_source_equals_fairseq_s(twins, batch, layer, heads):
    stock, ours = twins({"position": "sinusoidal"})
    wanted_by = {"alignment_layer": layer, "alignment_heads": heads}
    found, wanted = (model(**batch, **wanted_by)[1]["attn"][0] for model in (ours, stock))
    assert found.shape == wanted.shape
    real = batch["prev_output_tokens"].ne(1)
    assert_equal(found[real], wanted[real])
    torch.testing.assert_close(found[real].sum(-1), torch.ones(int(real.sum())))


@pytest.mark.parametrize("choice", ["features_only", "full_context_alignment"])
def test_decoder_choices_do_what_fairseq_s_do(twins, batch, choice):
    source, target = batch["src_tokens"], batch["prev_output_tokens"]
    found, wanted = (
        model.decoder(target, encoder_out=model.encoder(source), **{choice: True})[0]
        for model in twins({"position": "sinusoidal"})
    )
    assert found.shape == wanted.shape
    assert_equal(found[target.ne(1)], wanted[target.ne(1)])


def test_gradients_equal_fairseq_s(twins, options, batch):
    stock, ours = twins(options)
    target = batch["prev_output_tokens"]
    for model in (stock, ours):
        logits = model.train()(**batch)[0]
        F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=1).backward()
    wanted = dict(stock.named_parameters())
    largest = max(weight.grad.abs().max() for weight in wanted.values())
    assert {name for name, _ in ours.named_parameters()} == set(wanted)
    for name, weight in ours.named_parameters():
        torch.testing.assert_close(
            weight.grad, wanted[name].grad, rtol=1e-4, atol=float(1e-5 * largest), msg=name
        )


def test_beam_search_finds_fairseq_s_hypotheses(twins, options, batch, dictionary):
    found, wanted = (
        SequenceGenerator([model], dictionary, beam_size=5, max_len_b=12).generate(
            [model], {"net_input": batch}
        )
        for model in reversed(twins(options))
    )
    for ours, theirs in zip(found, wanted):
        assert [h["tokens"].tolist() for h in ours] == [h["tokens"].tolist() for h in theirs]
        for h, w in zip(ours, theirs):
            torch.testing.assert_close(
                h["positional_scores"], w["positional_scores"], atol=1e-4, rtol=0
            )
            torch.testing.assert_close(h["attention"], w["attention"], atol=1e-5, rtol=0)


def test_weights_are_drawn_as_fairseq_draws_them(task, options):
    """Same spread for every matrix, same constants for every norm and bias."""
    wide = {"decoder_embed_dim": 96, "decoder_ffn_embed_dim": 384}
    learned = options["position"] == "learned"
    both = {**TINY, **options, **({} if "share_all_embeddings" in options else wide)}
    args = Namespace(**both, encoder_learned_pos=learned, decoder_learned_pos=learned)
    base_architecture(args)
    stock = TransformerModel.build_model(args, task)
    ours = RoFormerTransformer.build_model(RoFormerConfig(**both), task)
    wanted = dict(stock.named_parameters())
    for name, weight in ours.named_parameters():
        if weight.dim() == 2:
            spread = wanted[name].std()
            torch.testing.assert_close(weight.std(), spread, rtol=0.1, atol=0, msg=name)
            assert weight.abs().max() < 1.6 * wanted[name].abs().max(), name
        elif wanted[name].unique().numel() == 1:
            assert torch.equal(weight, wanted[name]), name


def test_computing_activations_twice_changes_no_gradient(build, batch, options):
    gradients = []
    for twice in (False, True):
        model = build(**options, checkpoint_activations=twice).train()
        model(**batch)[0].square().mean().backward()
        gradients.append([weight.grad for weight in model.parameters()])
    for found, wanted in zip(*gradients):
        assert torch.equal(found, wanted)


def test_layerdrop_skips_layers_in_training_only(build, batch):
    model = build(encoder_layerdrop=0.5, decoder_layerdrop=0.5)

    def layers_run():
        encoder_out = model.encoder(batch["src_tokens"], return_all_hiddens=True)
        decoded = model.decoder(batch["prev_output_tokens"], encoder_out, return_all_hiddens=True)
        return len(encoder_out["encoder_states"]) - 1, len(decoded[1]["inner_states"]) - 1

    assert {layers_run() for _ in range(30)} == {(2, 2)}
    model.train()
    assert {layers_run() for _ in range(300)} == set(itertools.product(range(3), range(3)))


def test_a_stock_checkpoint_of_other_positions_is_refused(twins, build):
    stock, _ = twins({"position": "learned"})
    for position in ("rotary", "none", "sinusoidal"):
        with pytest.raises(
            ValueError, match="the checkpoint was trained with `position`='learned'"
        ):
            build(position=position).load_state_dict(stock.state_dict())
