"""docs/results.md: a section for each benchmark, which replaces its own and leaves the others."""

from pathlib import Path

from .pipeline import ROOT

PAGE = ROOT / "docs" / "results.md"


def write_section(name: str, text: str, page: Path = PAGE) -> None:
    """Write a Markdown section between two comments with its name, the second time in its place."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    section = f"{start}{text.strip()}\n{end}"
    written = page.read_text("utf-8") if page.exists() else "# Results\n"
    if start in written:
        before, _, rest = written.partition(start)
        written = before + section + rest.partition(end)[2]
    else:
        written = f"{written}\n{section}"
    page.write_text(written, "utf-8")
