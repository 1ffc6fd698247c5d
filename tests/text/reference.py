"""Slow, obvious twins of the text steps, written from the descriptions of the Perl scripts."""

import math
import unicodedata
from collections import Counter


def is_alnum(char):
    return unicodedata.category(char)[0] in "LNM"


def is_alpha(char):
    return unicodedata.category(char)[0] in "LM"


def is_number(char):
    return unicodedata.category(char)[0] == "N"


def multi_bleu(hypotheses, references):
    """multi-bleu.perl: up to four-grams, one reference, no smoothing, words between white space."""
    matched, total = [0] * 4, [0] * 4
    hypothesis_length = reference_length = 0
    for hypothesis, reference in zip(hypotheses, references):
        hypothesis, reference = hypothesis.split(), reference.split()
        hypothesis_length += len(hypothesis)
        reference_length += len(reference)
        for n in range(4):
            mine, theirs = ngrams(hypothesis, n + 1), ngrams(reference, n + 1)
            total[n] += sum(mine.values())
            matched[n] += sum(min(count, theirs[gram]) for gram, count in mine.items())
    if 0 in matched:
        return 0.0
    precision = math.prod(m / t for m, t in zip(matched, total)) ** 0.25
    brevity = min(1.0, math.exp(1 - reference_length / hypothesis_length))
    return 100 * brevity * precision


def ngrams(words, n):
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


def learn_merges(words):
    """All merges: count every pair of every word anew, take the most frequent (then last) one."""
    split = {word: [*word[:-1], word[-1] + "</w>"] for word in words}
    while True:
        pairs = Counter()
        for word, symbols in split.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += words[word]
        best = max(pairs, key=lambda pair: (pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            return
        yield best
        for symbols in split.values():
            place = 0
            while place + 1 < len(symbols):
                if (symbols[place], symbols[place + 1]) == best:
                    symbols[place : place + 2] = ["".join(best)]
                place += 1


def split_compounds(line):
    """Left to right: a hyphen between two visible characters, neither of them used before."""
    out, i = "", 0
    while i < len(line):
        if i + 2 < len(line) and line[i + 1] == "-" and not (line[i] + line[i + 2]).count(" "):
            out += f"{line[i]} ##AT##-##AT## {line[i + 2]}"
            i += 3
        else:
            out += line[i]
            i += 1
    return out


def moses_tokenise(line, prefixes, english, split_hyphens=False):
    """tokenizer.perl without entities; ``prefixes`` maps an abbreviation to "is numeric only"."""
    line = " ".join(line.split())
    line = separate_symbols(line)
    if split_hyphens:
        line = separate_hyphens(line)
    line = separate_dots(line)
    line = separate_commas(line)
    line = separate_apostrophes(line) if english else line.replace("'", " ' ")
    words = line.split()
    tokens = []
    for i, word in enumerate(words):
        following = words[i + 1] if i + 1 < len(words) else ""
        tokens += separate_full_stop(word, following, prefixes)
    if tokens and tokens[-1].endswith(".'"):
        tokens[-1:] = [tokens[-1][:-2], ".", "'"]
    return " ".join(" ".join(tokens).replace("\0", ".").split())


def separate_symbols(line):
    return "".join(c if is_alnum(c) or c.isspace() or c in ".'`,-" else f" {c} " for c in line)


def separate_hyphens(line):
    return "".join(
        " @-@ "
        if c == "-" and is_alnum(line[i - 1 : i] or " ") and is_alnum(line[i + 1 : i + 2] or " ")
        else c
        for i, c in enumerate(line)
    )


def separate_dots(line):
    """Two and more full stops are one word; they are written as NUL until all is done."""
    out, i = "", 0
    while i < len(line):
        j = i
        while j < len(line) and line[j] == ".":
            j += 1
        if j - i > 1:
            out += " " + "\0" * (j - i) + " "
            i = j
        else:
            out += line[i]
            i += 1
    return out


def separate_commas(line):
    """A comma stays only between two digits."""
    return "".join(
        " , "
        if c == ","
        and not (is_number(line[i - 1 : i] or " ") and is_number(line[i + 1 : i + 2] or " "))
        else c
        for i, c in enumerate(line)
    )


def separate_apostrophes(line):
    """English: "don't" is "don 't", "80's" is "80 's"; else it stands alone.

    Except as the line's first or last character: the script looks at both neighbours.
    """
    out = ""
    for i, c in enumerate(line):
        before, after = line[i - 1 : i] or " ", line[i + 1 : i + 2] or " "
        if c != "'" or i in (0, len(line) - 1):
            out += c
        elif is_alpha(after) and (is_alpha(before) or (is_number(before) and after == "s")):
            out += " '"
        elif is_number(before) and is_alpha(after):
            out += "'"
        else:
            out += " ' "
    return out


def separate_full_stop(word, following, prefixes):
    """The stop of an abbreviation, or before a small letter, is not the end of a sentence."""
    if len(word) < 2 or not word.endswith("."):
        return [word]
    stem = word[:-1]
    abbreviation = "." in stem and any(map(is_alpha, stem))
    known = stem in prefixes and not prefixes[stem]
    numeric = prefixes.get(stem, False) and following[:1] in tuple("0123456789")
    if abbreviation or known or numeric or following[:1].islower():
        return [word]
    return [stem, "."]
