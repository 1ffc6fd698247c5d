"""A small mirror of the WMT14 archives: real names and layout, and all that spoils real text."""

import io
import random
import tarfile

WORDS = {
    "the dog": "der Hund",
    "the cat": "die Katze",
    "my friend": "mein Freund",
    "an old man": "ein alter Mann",
    "Mr. Smith": "Herr Smith",
    "sees": "sieht",
    "likes": "mag",
    "doesn't hear": "hört nicht",
    "the well-known house": "das Miets-Haus",
    "a red car": "ein rotes Auto",
    "3,500 people": "3.500 Leute",
    "today": "heute",
    "in the garden": "im Garten",
    "again": "wieder",
}
ENGLISH = list(WORDS)
SYLLABLES = ["ka", "li", "mo", "ber", "tan", "su", "gel", "fri", "no", "wi"]
ODD = [
    ("one\u2028line here", "eine\u2028Zeile hier"),
    ("only one side\u2028here", "nur eine Seite hier"),
    ("next\x85line", "nächste Zeile"),
    ("return\rinside a line", "mitten in der\rZeile"),
    ("line end of another system\r", "Zeilenende eines anderen Systems"),
    ("nul\0inside", "Nul innen"),
    ("no-break\xa0space", "festes\xa0Leerzeichen"),
    ("\ufeffa mark of byte order", "eine Marke der Byte-Folge"),
    ("", "keine Quelle"),
    ("no target", ""),
    ("   ", "   "),
    ("", ""),
    ("<s> <pad> </s> <unk> in text", "<s> <pad> </s> <unk> im Text"),
    ("joints@@ like @@ this@@", "Fugen@@ wie @@ diese@@"),
    ("low \u2581block", "tiefer \u2581Block"),
    ("entities &apos; &amp; it's", "Entitäten &apos; &amp; so"),
    ("very short", " ".join(["sehr lang"] * 20)),
    (" ".join(["long"] * 300), " ".join(["lang"] * 300)),
    ("the same twice", "zweimal dasselbe"),
    ("the same twice", "zweimal dasselbe"),
    ("form\x0cfeed \u3000 and\x1cseparators", "Seitenvorschub und Trenner"),
]


def sentence(rng):
    """A pair of sentences of the toy language."""
    subject, verb, thing, end = (
        rng.choice(ENGLISH[a:b]) for a, b in ((0, 5), (5, 8), (8, 11), (11, 14))
    )
    name = "".join(rng.choices(SYLLABLES, k=3))
    english = f"{subject} {verb} {thing} of {name} {end}."
    german = f"{WORDS[subject]} {WORDS[verb]} {WORDS[thing]} von {name} {WORDS[end]}."
    return english[0].upper() + english[1:], german[0].upper() + german[1:]


def pairs(count, seed):
    rng = random.Random(seed)
    return [sentence(rng) for _ in range(count)]


def sgm(kind, language, lines):
    """A test set as the shared tasks write them; kind is src or ref."""
    own = "srclang" if kind == "src" else "trglang"
    segments = "\n".join(f'<seg id="{n}">{line}</seg>' for n, line in enumerate(lines, 1))
    return (
        f'<{kind}set setid="newstest" {own}="{language}">\n<doc docid="1" origlang="en">\n<p>\n'
        f"{segments}\n</p>\n</doc>\n</{kind}set>\n"
    )


def archive(path, members):
    """Write a .tgz of members, text by name."""
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            content = text.encode() if isinstance(text, str) else text
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def corpus(stem, lines, last_newline=True):
    """Both sides of a training corpus; other languages of the real archive are left out."""
    end = "\n" if last_newline else ""
    return {
        f"{stem}.en": "\n".join(source for source, _ in lines) + end,
        f"{stem}.de": "\n".join(target for _, target in lines) + end,
    }


def test_set(stem, names, lines):
    source, target = names
    return {
        f"{stem}-{source}": sgm("src", "en", [source for source, _ in lines]),
        f"{stem}-{target}": sgm("ref", "de", [target for _, target in lines]),
        f"{stem}.txt": "another file of the archive\n",
    }


def build(folder):
    """Fill a folder with the five archives and return the pairs of the test set."""
    folder.mkdir()
    europarl = pairs(250, 1) + ODD
    archive(
        folder / "training-parallel-europarl-v7.tgz",
        {**corpus("training/europarl-v7.de-en", europarl), "training/europarl-v7.fr-en.fr": "non"},
    )
    # One side ends without a line feed: glued to the next corpus it would lose a line.
    archive(
        folder / "training-parallel-commoncrawl.tgz",
        corpus("commoncrawl.de-en", ODD + pairs(200, 2), last_newline=False),
    )
    archive(
        folder / "training-parallel-nc-v9.tgz",
        corpus("training/news-commentary-v9.de-en", pairs(150, 3)),
    )
    names = ("src.en.sgm", "ref.de.sgm")
    archive(folder / "dev.tgz", test_set("dev/newstest2013", names, pairs(20, 4)))
    test = [*pairs(30, 5), ("", "Leer."), ("S&amp;P is &lt;here&gt;.", "S&amp;P ist da.")]
    archive(folder / "test-full.tgz", test_set("test-full/newstest2014-deen", names, test))
    return test
