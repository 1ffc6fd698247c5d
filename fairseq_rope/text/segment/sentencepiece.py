"""Byte-pair encoding with sentencepiece."""

from __future__ import annotations

import io
from collections import Counter

import sentencepiece

from ..lines import PathLike, replacing
from .segmenter import Segmenter

MARK = "\u2581"
"""The low block (▁) with which sentencepiece begins a word's first piece."""


class Sentencepiece(Segmenter):
    """Pieces of sentencepiece: the first piece of a word begins with U+2581."""

    joint = " "

    def __init__(self, model: PathLike) -> None:
        super().__init__(model)
        try:
            self.processor = sentencepiece.SentencePieceProcessor(model_file=str(model))
        except RuntimeError:
            raise ValueError(
                f"`model` must be a sentencepiece model, but {model} is none; name the "
                "`--segmenter` that learnt it, or learn one with `fairseq-rope segment learn`"
            ) from None

    @classmethod
    def learn(cls, words: Counter[str], size: int, model: PathLike) -> None:
        proto = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                # BPE needs no more than the words and their counts.
                sentence_iterator=(f"{word}\t{count}" for word, count in sorted(words.items())),
                input_format="tsv",
                model_writer=proto,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                # Normalisation is a step of its own; here it would be hidden in the model.
                normalization_rule_name="identity",
                # fairseq has its own marks of a sentence's beginning and end.
                bos_id=-1,
                eos_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).rpartition("] ")[2]
            raise ValueError(f"`size` does not suit this text, it is {size}: {reason}") from None
        with replacing(model) as (partial,):
            partial.write_bytes(proto.getvalue())

    @staticmethod
    def words(line: str) -> list[str]:
        return line.replace(MARK, "_").split()

    def split(self, word: str) -> list[str]:
        return self.processor.encode(word, out_type=str)

    @staticmethod
    def undo(line: str) -> str:
        return line.replace(" ", "").replace(MARK, " ").strip()
