"""The demo as commands that one can also type oneself, from the repository's folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.quickstart.progress import GenerationProgress, TrainingProgress, show_line
from examples.quickstart.steps import Step

WORK = Path("demo")
UPDATES = 2400

EXTRACT = "python -m examples.quickstart.corpus {origin} --output {work}/text"

LEARN = """\
fairseq-rope segment learn {work}/text/train.{source} {work}/text/train.{target} \\
    --size 4000 --model {work}/pieces/bpe.model"""

APPLY = """\
fairseq-rope segment apply --model {work}/pieces/bpe.model \\
    {work}/text/{part}.{language} {work}/pieces/{part}.{language}"""

BINARISE = """\
fairseq-preprocess --source-lang {source} --target-lang {target} --joined-dictionary \\
    --trainpref {work}/pieces/train --validpref {work}/pieces/valid \\
    --testpref {work}/pieces/test --destdir {work}/data"""

# fairseq also validates whenever it saves; by epochs it need do neither. Batches whose size is no
# multiple of --required-batch-size-multiple may be left out, so it is 1 here and in translation.
TRAIN = """\
fairseq-train {work}/data --source-lang {source} --target-lang {target} \\
    --user-dir fairseq_rope --arch roformer_transformer_tiny \\
    --share-all-embeddings --rope-cross-attention --dropout 0.2 \\
    --criterion label_smoothed_cross_entropy --label-smoothing 0.1 \\
    --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0 \\
    --lr 3e-3 --lr-scheduler polynomial_decay --warmup-updates 400 --total-num-update {updates} \\
    --max-tokens 2048 --required-batch-size-multiple 1 --max-update {updates} --seed 1 \\
    --save-interval-updates 50 --keep-interval-updates 5 --no-epoch-checkpoints \\
    --save-interval 1000 --validate-interval 1000 --log-format json --log-interval 20 \\
    --save-dir {work}/training"""

AVERAGE = """\
fairseq-rope average --inputs {work}/training --num-update-checkpoints 5 \\
    --output {work}/model/averaged.pt"""

TRANSLATION = """\
{work}/data --source-lang {source} --target-lang {target} \\
    --user-dir fairseq_rope --path {work}/model/averaged.pt --beam 4 \\
    --required-batch-size-multiple 1 \\
    --bpe sentencepiece --sentencepiece-model {work}/pieces/bpe.model"""

GENERATE = f"""\
fairseq-generate {TRANSLATION} \\
    --gen-subset test --batch-size 50 --results-path {{work}}/translation \\
    --log-format simple --log-interval 1"""

INTERACTIVE = f"fairseq-interactive {TRANSLATION}"

SCORE = """\
fairseq-rope score {work}/translation/generate-test.txt --reference {work}/text/test.{target} \\
    --source-lang {source} --target-lang {language} --figures sacrebleu"""


@dataclass(frozen=True)
class Text:
    """What is translated: the English of a wheel into `target`, or a user's two `files`."""

    source: str = "en"
    target: str = "de"
    files: tuple[Path, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Text:
        """Read `SRC` and `TGT`, or else `TARGET_LANG`.

        Raises ValueError if one of the two files is missing, or the language can be none: it
        becomes part of commands and of the folder's name.
        """
        names = {name: environment.get(name, "") for name in ("SRC", "TGT")}
        if not any(names.values()):
            target = environment.get("TARGET_LANG") or "de"
            if not re.fullmatch(r"[A-Za-z]+([-_][A-Za-z0-9]+)*", target):
                raise ValueError(
                    f"TARGET_LANG must be a code such as de or zh-Hans, but is {target!r} instead."
                )
            return cls(target=target)
        for name, file in names.items():
            if not Path(file).is_file():
                raise ValueError(f"{name} must be a text file, but is {file!r} instead.")
        return cls("src", "tgt", tuple(map(Path, names.values())))

    @property
    def folder(self) -> Path:
        """Where everything that is made of this text stands."""
        return WORK / ("own" if self.files else f"{self.source}-{self.target}")

    def fill(self, command: str, **more: str) -> str:
        """Put this text's languages, files and folder into a command."""
        files = shlex.join(["--files", *map(str, self.files)])
        return command.format(
            work=self.folder,
            source=self.source,
            target=self.target,
            origin=files if self.files else f"--target-lang {self.target}",
            **more,
        )


def chain(text: Text) -> list[Step]:
    """All steps, in order; each writes into the folder of its own name."""
    sides = [
        (part, side) for part in ("train", "valid", "test") for side in (text.source, text.target)
    ]
    apply = [text.fill(APPLY, part=part, language=language) for part, language in sides]
    # sacreBLEU knows "zh", not "zh-Hans".
    score = text.fill(SCORE, language=text.target.partition("-")[0])
    train = text.fill(TRAIN, updates=str(UPDATES))
    return [
        Step("text", [text.fill(EXTRACT)], show_line, inputs=text.files),
        Step("pieces", [text.fill(LEARN), *apply]),
        Step("data", [text.fill(BINARISE)]),
        Step("training", [train], TrainingProgress(UPDATES), resumes=True),
        Step("model", [text.fill(AVERAGE)]),
        Step("translation", [text.fill(GENERATE)], GenerationProgress()),
        Step("score", [score]),
    ]
