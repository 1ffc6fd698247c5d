"""fairseq-generate, fairseq-interactive and the hub with a rotary model."""

import io
import re
import sys
import threading

import fairseq_cli.interactive
import pytest
import torch

from fairseq_rope.models import RoFormerTransformer

from .commands import (
    GENERATION,
    PLUGIN,
    finish,
    generate,
    hypotheses,
    load,
    parse,
    start,
    train,
)


@pytest.fixture(scope="module")
def plain(data, trained, tmp_path_factory):
    """What generation writes without further options."""
    return generate(data, trained.last, tmp_path_factory.mktemp("plain"))


def lines(printed, letter):
    """{sentence number: text} of the lines that begin with a letter."""
    return dict(re.findall(rf"^{letter}-(\d+)\t(.*)$", printed, re.M))


def test_every_sentence_is_translated_with_a_score(plain):
    found = hypotheses(plain)
    assert sorted(found) == list(range(24))
    assert all(score < 0 for ((score, _),) in found.values())


def same_translations(found, expected, tolerance=1e-3):
    """The same texts, with scores within a tolerance."""
    found, expected = hypotheses(found), hypotheses(expected)
    assert found.keys() == expected.keys()
    for number, ((score, text),) in expected.items():
        assert found[number] == [(pytest.approx(score, abs=tolerance), text)]


@pytest.mark.parametrize("options", ["--batch-size 1", "--batch-size 64", "--max-tokens 30"])
def test_batches_do_not_change_a_translation(options, data, trained, tmp_path, plain):
    same_translations(generate(data, trained.last, tmp_path, options), plain, 1e-4)


def test_two_generations_in_one_process_are_as_in_two(data, trained, tmp_path, plain):
    generate(data, trained.last, tmp_path / "other", "--beam 7 --batch-size 3")
    same_translations(generate(data, trained.last, tmp_path / "again"), plain, 0)


def test_print_alignment_gives_each_target_word_its_most_attended_source_word(
    data, trained, tmp_path, plain
):
    printed = generate(data, trained.last, tmp_path, "--print-alignment --max-len-b 5")
    model = load(trained.last)
    words = model.encoder.dictionary
    sources, alignments = lines(printed, "S"), lines(printed, "A")
    for number, ((_, text),) in hypotheses(printed).items():
        source = words.encode_line(sources[str(number)], add_if_not_exist=False).long()
        target = words.encode_line(text, add_if_not_exist=False, append_eos=False).long()
        started = torch.cat((torch.tensor([words.eos()]), target))
        attention = model(source[None], None, started[None])[1]["attn"][0][0]
        chosen = attention[: len(target), :-1].argmax(dim=1).tolist()  # eos is no word
        pairs = [f"{place}-{word}" for word, place in enumerate(chosen)]
        assert alignments[str(number)].split() == pairs


def test_prefix_size_forces_the_first_words_of_the_reference(data, trained, tmp_path):
    printed = generate(data, trained.last, tmp_path, "--prefix-size 2")
    references = lines(printed, "T")
    assert len(hypotheses(printed)) == 24
    for number, ((_, text),) in hypotheses(printed).items():
        forced = references[str(number)].split()[:2]
        assert text.split()[: len(forced)] == [word.replace("<<unk>>", "<unk>") for word in forced]


def test_sampling_with_one_seed_repeats_itself(data, trained, tmp_path):
    options = "--sampling --sampling-topk 5 --beam 4 --nbest 4 --seed"
    one, same, other = (
        hypotheses(generate(data, trained.last, tmp_path / str(i), options, seed))
        for i, seed in enumerate((1, 1, 2))
    )
    assert one == same != other
    assert all(len(found) == 4 for found in one.values())


@pytest.mark.parametrize(
    "options",
    [
        # fairseq's, for any model: groups work in a single batch only
        "--diverse-beam-groups 2 --diverse-beam-strength 0.5 --beam 4 --nbest 4 --batch-size 24",
        "--diversity-rate 0.5 --beam 4 --nbest 4",
        "--beam 4 --nbest 4 --no-repeat-ngram-size 1",
        "--beam 4 --nbest 4 --match-source-len",
    ],
)
def test_other_searches_give_as_many_hypotheses(options, data, trained, tmp_path):
    found = hypotheses(generate(data, trained.last, tmp_path, options))
    assert [len(found[number]) for number in range(24)] == [4] * 24


def test_an_ensemble_averages_two_checkpoints(data, trained, tmp_path, plain):
    twice = generate(data, f"{trained.last}:{trained.last}", tmp_path / "twice")
    same_translations(twice, plain)
    mixed = generate(data, f"{trained.last}:{trained.halves[0]}", tmp_path / "mixed")
    assert hypotheses(mixed) != hypotheses(plain)


def test_an_ensemble_of_two_position_schemes(data, trained, tmp_path):
    train(data, tmp_path / "other", "--position sinusoidal --max-update 1 --disable-validation")
    paths = f"{trained.last}:{tmp_path}/other/checkpoint_last.pt"
    assert len(hypotheses(generate(data, paths, tmp_path))) == 24


def test_score_reference_scores_the_references(data, trained, tmp_path):
    printed = generate(data, trained.last, tmp_path, "--score-reference")
    references = lines(printed, "T")
    assert len(references) == 24
    for number, ((score, text),) in hypotheses(printed).items():
        assert score < 0
        assert text == references[str(number)].replace("<<unk>>", "<unk>")


def test_half_precision_weights_translate_like_full_ones(data, trained, tmp_path, plain):
    """--fp16 runs on a CPU too; the tables are float32 whatever the weights are."""
    half = hypotheses(generate(data, trained.last, tmp_path, "--fp16"))
    for number, ((score, _),) in hypotheses(plain).items():
        assert half[number][0][0] == pytest.approx(score, abs=0.05)


def interactive(data, checkpoint, text, capsys, monkeypatch, options=""):
    """fairseq-interactive in this process on the lines of a text -> what it prints."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    limits = "--cpu --beam 3 --max-len-a 0 --max-len-b 12"
    fairseq_cli.interactive.main(parse("interactive", data, "--path", checkpoint, limits, options))
    return capsys.readouterr().out


def test_interactive_answers_each_line_at_once(data, trained, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # else Python holds back what goes into a pipe
    line = [data, "--path", trained.last, "--user-dir", PLUGIN, "--cpu --max-len-b 5"]
    process = start("interactive", *line)
    patience = threading.Timer(60, process.kill)
    patience.start()
    for source in ("w1 w2 w3", "w4", "w5 w6"):
        process.stdin.write(source + "\n")
        process.stdin.flush()
        answer = []
        for printed in process.stdout:
            answer.append(printed)
            if printed.startswith("P-"):
                break
        assert lines("".join(answer), "S").popitem()[1] == source
    patience.cancel()
    finish(process)


def test_interactive_gives_what_generation_gives(data, trained, corpus, plain, capsys, monkeypatch):
    text = (corpus / "test.src").read_text("utf-8")
    options = "--buffer-size 100 --batch-size 7"
    printed = interactive(data, trained.last, text, capsys, monkeypatch, options)
    same_translations(printed, plain)


def test_interactive_keeps_blank_lines_in_their_place(data, trained, capsys, monkeypatch):
    text = "w1 w2\n\n  \nw3\n"
    printed = interactive(data, trained.last, text, capsys, monkeypatch, "--buffer-size 4")
    assert sorted(hypotheses(printed)) == [0, 1, 2, 3]
    assert lines(printed, "S") == {"0": "w1 w2", "1": "", "2": "", "3": "w3"}


def test_interactive_says_which_line_is_too_long(data, trained, capsys, monkeypatch):
    text = "w1\n" + "w2 " * 30 + "\nw3\n"
    options = "--buffer-size 3 --max-source-positions 20"
    with pytest.raises(Exception, match=r"sample #1 is invalid .*31.*max_positions=\(20, 1024\)"):
        interactive(data, trained.last, text, capsys, monkeypatch, options)
    options += " --skip-invalid-size-inputs-valid-test"
    printed = interactive(data, trained.last, text, capsys, monkeypatch, options)
    assert sorted(hypotheses(printed)) == [0, 2]


def test_a_rotary_model_reads_longer_sentences_than_it_was_built_for(
    data, trained, capsys, monkeypatch
):
    """1,500 words with the default limits of 1,024: the task has a limit, the model has none."""
    options = "--max-source-positions 2000"
    text = "w1 " * 1500 + "\n"
    assert sorted(
        hypotheses(interactive(data, trained.last, text, capsys, monkeypatch, options))
    ) == [0]


@pytest.fixture(scope="module")
def hub(data, trained):
    return RoFormerTransformer.from_pretrained(
        trained.folder, "checkpoint_last.pt", data_name_or_path=str(data)
    )


def test_from_pretrained_translates_as_generation_does(hub, corpus, plain):
    sources = (corpus / "test.src").read_text("utf-8").splitlines()
    found = hub.translate(sources, beam=3, max_len_a=0, max_len_b=12)
    assert found == [text for ((_, text),) in map(hypotheses(plain).get, range(24))]


def test_from_pretrained_scores_a_batch_after_translating(hub, trained):
    """The beam size of the search must not stay behind in the model."""
    hub.translate(["w1 w2 w3"], beam=5)
    tokens = torch.tensor([[4, 5, 6, 2], [4, 5, 6, 2], [7, 8, 9, 2], [7, 8, 9, 2], [4, 4, 4, 2]])
    after, fresh = hub.models[0], load(trained.last)
    torch.testing.assert_close(after(tokens, None, tokens)[0], fresh(tokens, None, tokens)[0])
    first, source = tokens[:, :1], fresh.encoder(tokens)
    cached = after.decoder(first, source, incremental_state={})[0]
    torch.testing.assert_close(cached, fresh.decoder(first, source)[0])


def test_from_pretrained_refuses_what_contradicts_the_weights(data, trained):
    with pytest.raises(ValueError, match="`rope_layout`='half'"):
        RoFormerTransformer.from_pretrained(
            trained.folder,
            "checkpoint_last.pt",
            data_name_or_path=str(data),
            rope_layout="interleaved",
        )


def test_settings_of_generation_are_not_asked_for(data, trained):
    """Everything that decides what the weights mean comes from the checkpoint."""
    config = parse("generate", data, "--path", trained.last, GENERATION)
    assert config.model is None
    assert load(trained.last).cfg.rope_base == 50
