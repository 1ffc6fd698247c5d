"""fairseq tasks; fairseq imports this folder itself when `--user-dir` names the package."""

from .translation_concat import TranslationConcatConfig, TranslationConcatTask

__all__ = ["TranslationConcatConfig", "TranslationConcatTask"]
