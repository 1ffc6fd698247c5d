"""`--task translation_concat`: translation, trained on several sentences a line too."""

from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import II

from ..data.concatenated_pairs import ORDERS, ConcatenatedPairs


@dataclass
class TranslationConcatConfig(TranslationConfig):
    concat_share: float = field(
        default=0.5, metadata={"help": "share of the training examples that are concatenations"}
    )
    concat_sentences: int = field(
        default=2, metadata={"help": "most sentence pairs in one training example"}
    )
    concat_order: ChoiceEnum(ORDERS) = field(  # type: ignore[valid-type]
        default="random",
        metadata={
            "help": "what follows a sentence pair: any other, or the next ones of the training "
            "data, where these are in the order of documents"
        },
    )
    seed: int = II("common.seed")
    max_tokens: Optional[int] = II("dataset.max_tokens")


@register_task("translation_concat", dataclass=TranslationConcatConfig)
class TranslationConcatTask(TranslationTask):
    """fairseq's `translation`, but for the training data: see ConcatenatedPairs.

    Validation, test and generation are those of `translation`, and the checkpoints are used with
    either task.

    Raises:
        ValueError: options out of range, or that concatenated data cannot follow
    """

    cfg: TranslationConcatConfig

    def __init__(self, cfg: TranslationConcatConfig, *dictionaries: Any) -> None:
        _check(cfg)
        super().__init__(cfg, *dictionaries)

    def load_dataset(
        self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any
    ) -> None:
        super().load_dataset(split, epoch, combine, **kwargs)
        if split != self.cfg.train_subset:
            return
        limit = self.cfg.max_tokens or float("inf")
        self.datasets[split] = ConcatenatedPairs(
            self.datasets[split],
            self.cfg.concat_share,
            self.cfg.concat_sentences,
            str(self.cfg.concat_order),
            (min(limit, self.cfg.max_source_positions), min(limit, self.cfg.max_target_positions)),
            self.cfg.seed,
        )


def _check(cfg: TranslationConcatConfig) -> None:
    if not 0 <= cfg.concat_share <= 1:
        raise ValueError(f"`concat_share` must be from 0 to 1, but is {cfg.concat_share}.")
    if cfg.concat_sentences < 2:
        raise ValueError(
            f"`concat_sentences` must be at least 2, but is {cfg.concat_sentences}; for single "
            "sentences use `task`='translation'."
        )
    for name in ("load_alignments", "num_batch_buckets"):
        if getattr(cfg, name):
            raise ValueError(
                f"`{name}`={getattr(cfg, name)} cannot be used with `task`='translation_concat'; "
                "leave it out."
            )
