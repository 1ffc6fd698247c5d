"""The whole must learn: train in process, translate by beam search, score."""

import pytest
import sacrebleu
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch.nn import functional as F

PAD = 1
WIDER = {
    "encoder_embed_dim": 64,
    "encoder_ffn_embed_dim": 128,
    "decoder_embed_dim": 64,
    "decoder_ffn_embed_dim": 128,
}


def reverse(words):
    """The words backwards, eos still last."""
    return torch.cat((words[:-1].flip(0), words[-1:]))


def train_to_reverse(model, sources, collate, updates=400, batch_size=64):
    """Adam, with a learning rate that warms up and then falls to zero."""
    optimiser = torch.optim.Adam(model.train().parameters(), lr=3e-3, betas=(0.9, 0.98))
    warm_up = updates // 10
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda n: min((n + 1) / warm_up, (updates - n) / (updates - warm_up))
    )
    for update in range(updates):
        start = update * batch_size % len(sources)
        batch = sources[start : start + batch_size]
        target = collate([reverse(words) for words in batch])
        previous = collate([reverse(words).roll(1) for words in batch])
        logits = model(collate(batch, left_pad=True), None, previous)[0]
        optimiser.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD).backward()
        optimiser.step()
        schedule.step()


def bleu_of_reversal(model, sources, collate, dictionary):
    """BLEU of beam search in one left-padded batch."""
    tokens = collate(sources, left_pad=True)
    sample = {"net_input": {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(dim=1)}}
    generator = SequenceGenerator([model], dictionary, beam_size=4, max_len_b=20)
    found = [dictionary.string(h[0]["tokens"]) for h in generator.generate([model], sample)]
    wanted = [dictionary.string(reverse(words)) for words in sources]
    return sacrebleu.corpus_bleu(found, [wanted], tokenize="none").score


@pytest.fixture
def score_of_reversal(build, sentences, collate, dictionary):
    """score_of_reversal(**options): train a model, score it on unseen sentences of 4 and more."""

    def make(**options):
        drawn = sentences(8200, longest=10)
        seen, held_out = drawn[:8000], [words for words in drawn[8000:] if len(words) > 4]
        assert not {tuple(w.tolist()) for w in seen} & {tuple(w.tolist()) for w in held_out}
        model = build(sharpness=1.0, **options, **WIDER)
        train_to_reverse(model, seen, collate)
        return bleu_of_reversal(model, held_out, collate, dictionary)

    return make


@pytest.mark.parametrize("position, learns", [("rotary", True), ("none", False)])
def test_a_tiny_model_learns_to_reverse_sentences_if_it_knows_word_order(
    score_of_reversal, position, learns
):
    """Without positions the same training fails."""
    score = score_of_reversal(position=position)
    assert score >= 95 if learns else score < 30


@pytest.mark.parametrize("feature_map", ["elu", "favor"])
def test_a_tiny_model_with_linear_attention_learns_the_same(score_of_reversal, feature_map):
    assert score_of_reversal(attention="linear", linear_feature_map=feature_map) >= 95
