"""From a raw parallel text to data, by the scripts of examples/wmt14_en_de, and calling those.

A text is a folder of `train`, `val` and `test_2016_flickr`, each as NAME.en.gz and NAME.de.gz: the
files of Multi30k.
"""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.sax.saxutils import escape

from fairseq_rope.text.lines import read_lines

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "examples" / "wmt14_en_de"
PARTS = ("train", "val", "test_2016_flickr")


def prepare(data: Path, work: Path, merges: int) -> None:
    """Prepare a text as the example prepares WMT14; what is done is not done again."""
    mirror = work / "mirror"
    if not mirror.exists():
        write_mirror(data, mirror)
    settings = {"WMT_SOURCE": str(mirror), "SIZE": str(merges), "THRESHOLD": "1"}
    run_script("prepare.sh", work / "prepare.log", work, **settings)


def write_mirror(data: Path, mirror: Path) -> None:
    """Pack the text as the five archives that prepare.sh reads."""
    text = {
        (part, language): list(read_lines(data / f"{part}.{language}.gz"))
        for part in PARTS
        for language in ("en", "de")
    }
    mirror.mkdir(parents=True, exist_ok=True)
    third = -(-len(text["train", "en"]) // 3)
    corpora = {
        "training-parallel-europarl-v7.tgz": "training/europarl-v7.de-en",
        "training-parallel-commoncrawl.tgz": "commoncrawl.de-en",
        "training-parallel-nc-v9.tgz": "training/news-commentary-v9.de-en",
    }
    for number, (archive, name) in enumerate(corpora.items()):
        lines = slice(number * third, (number + 1) * third)
        sides = {
            f"{name}.{language}": "".join(f"{line}\n" for line in text["train", language][lines])
            for language in ("en", "de")
        }
        _write_archive(mirror / archive, sides)
    for archive, part, name in (
        ("dev.tgz", "val", "dev/newstest2013-{}"),
        ("test-full.tgz", "test_2016_flickr", "test-full/newstest2014-deen-{}"),
    ):
        sides = {
            name.format(f"{kind}.{language}.sgm"): _sgm(kind, language, text[part, language])
            for kind, language in (("src", "en"), ("ref", "de"))
        }
        _write_archive(mirror / archive, sides)


def _write_archive(path: Path, members: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            content = text.encode()
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))


def _sgm(kind: str, language: str, lines: list[str]) -> str:
    name = "srclang" if kind == "src" else "trglang"
    segments = "\n".join(f"<seg>{escape(line)}</seg>" for line in lines)
    return f'<{kind}set {name}="{language}">\n<doc>\n{segments}\n</doc>\n</{kind}set>\n'


def run_script(name: str, log: Path, work: Path, *arguments: str, **settings: str) -> str:
    """Run one of the example's scripts on one CPU thread a process, and return what it printed.

    The log has it all at once, also if the script or this program is stopped.
    """
    return run_command([str(SCRIPTS / name), *arguments], log, WORK=str(work), GPUS="0", **settings)


def run_command(command: list[str], log: Path, **settings: str) -> str:
    """Run a command with these environment variables, and return what it printed."""
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "OMP_NUM_THREADS": "1", **settings}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a+", encoding="utf-8") as file:
        start = file.tell()
        code = subprocess.run(command, env=environment, stdout=file, stderr=file).returncode
        if code:
            raise SystemExit(f"{command[0]} failed; its output is in {log}")
        file.seek(start)
        return file.read()
