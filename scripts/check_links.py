"""Fail if a link of README.md, CONTRIBUTING.md or a page of docs/ leads nowhere: part of `make lint`.

Checked are relative links, to files of the repository and to headings. Addresses of other hosts are not opened.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
_CODE = re.compile(r"`[^`]*`")


def pages() -> list[Path]:
    """Return every Markdown page that people read."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def _lines(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of *page* outside of code blocks, with their numbers."""
    is_code = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of the headings of *page*, as GitHub makes them."""
    found: list[str] = []
    for _, line in _lines(page):
        if match := _HEADING.match(line):
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", match[1]).replace("`", "").lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            repeats = sum(
                other == anchor or re.fullmatch(rf"{re.escape(anchor)}-\d+", other) is not None for other in found
            )
            found.append(f"{anchor}-{repeats}" if repeats else anchor)
    return frozenset(found)


def faults(page: Path) -> Iterator[str]:
    """Yield a line for each link of *page* that leads nowhere."""
    for number, line in _lines(page):
        for target in _LINK.findall(_CODE.sub("", line)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            to = (page.parent / name).resolve() if name else page
            where = f"{page.relative_to(ROOT)}:{number}: {target}"
            if not to.exists():
                yield f"{where}: there is no such file"
            elif anchor and to.suffix == ".md" and anchor not in anchors(to):
                yield f"{where}: there is no such heading"


def main() -> None:
    """Print dead links; exit with status 1 if there is one."""
    checked = pages()
    found = [fault for page in checked for fault in faults(page)]
    if found:
        sys.exit("\n".join(found))
    print(f"{len(checked)} pages, no dead link")


if __name__ == "__main__":
    main()
