"""Count constructions that make prose hard to read, per folder, and fail above a folder's limit: part of `make lint`.

    python -m scripts.plain_english [--show N] [PATH ...]

Prose is every comment, docstring and text of a Python file, and every line of a Markdown page outside of code. The
rules are in CONTRIBUTING.md. A limit may only fall: lower it when a folder has become better.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIMITS = {  # constructions in 1,000 words
    "README.md": 0.5,
    "CONTRIBUTING.md": 0.5,
    "docs": 0.5,
    "tidemark": 0.5,
    "services": 0.5,
    "tests": 0.5,
    "benchmarks": 0.5,
    "examples": 0.5,
    "demo": 0.5,
    "scripts": 0.5,
}

_VERB = (
    r"(?:is|was|are|were|has|have|had|can|cannot|may|must|does|do|did|comes?|came|lies?|stands?|goes|went|asks?|waits?|"
    r"reads?|writes?|holds?|wants?|needs?|sends?|knows?|it|they|he|there|others?|(?:some|no)body)"
)
CONSTRUCTIONS = {
    "headless clause (what)": re.compile(rf"\b[Ww]hat(?:ever)?\s+(?:one\s+)?{_VERB}\b"),
    "headless clause (who)": re.compile(
        rf"(?:^|[.;:,(]\s+|\b(?:for|of|by|to|than|with)\s)[Ww]ho(?:ever|m)?\s+{_VERB}\b"
    ),
    "another verb for report, log or return": re.compile(r"\b[Tt](?:ells?|old|elling)\b"),
    "another verb for a place, to continue or to release": re.compile(
        r"\b(?:lies?|stands?)\s+(?:in|on|behind|at|beside|between|above|below|there|anywhere|one)\b"
        r"|\bgo(?:es)?\s+on\b|\blet(?:s|ting)?\s+go\b|\bso\s+(?:long|far)\s+as\b"
    ),
    "actor without a name": re.compile(r"\b(?:some|no|every)body\b", re.IGNORECASE),
    "fragment without a verb": re.compile(
        r"^\s*(?:\"\"\")?(?:Of|As|Whether|What|Until|Since|From|For|By|In|On)\s[^.]{0,60}\.\s*(?:\"\"\")?$"
    ),
}
_WORD = re.compile(r"[A-Za-z']+")
_CODE_SPAN = re.compile(r"`[^`]*`")


class Hit(NamedTuple):
    """A construction at a line of a file."""

    path: Path
    line: int
    construction: str
    text: str


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines of prose in a Python file or a Markdown page."""
    text = path.read_text()
    yield from _of_page(text) if path.suffix == ".md" else _of_module(text)


def _of_page(text: str) -> Iterator[tuple[int, str]]:
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, _CODE_SPAN.sub("X", line)


def _of_module(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and " " in token.string):
            yield from enumerate(token.string.splitlines(), token.start[0])


def hits_in(path: Path) -> tuple[int, list[Hit]]:
    """Return the number of words of prose in *path*, and its constructions."""
    words, hits = 0, []
    for number, line in prose_of(path):
        words += len(_WORD.findall(line))
        for name, pattern in CONSTRUCTIONS.items():
            hits += [Hit(path, number, name, line.strip())] * len(pattern.findall(line))
    return words, hits


def files_in(path: Path) -> list[Path]:
    """Return *path*, or the Python files and Markdown pages below it, without generated ones."""
    if path.is_file():
        return [path]
    found = [*path.rglob("*.py"), *path.rglob("*.md")]
    return sorted(file for file in found if "_pb2" not in file.name and "node_modules" not in file.parts)


def main() -> None:
    """Print the rate of each folder; exit with status 1 if one is above its limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("paths", nargs="*", default=list(LIMITS), metavar="PATH")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N constructions of each path")
    options = parser.parse_args()
    is_right = True
    for path in options.paths:
        words, hits = 0, []
        for file in files_in(Path(path)):
            more_words, more_hits = hits_in(file)
            words += more_words
            hits += more_hits
        rate, limit = 1000 * len(hits) / max(words, 1), LIMITS.get(path, float("inf"))
        is_right &= rate <= limit
        print(f"{path:12} {rate:5.1f} in 1,000 words (limit {limit})" + ("" if rate <= limit else "  ABOVE ITS LIMIT"))
        for hit in hits[: options.show]:
            print(f"  {hit.path}:{hit.line}: {hit.construction}: {hit.text[:120]}")
    if not is_right:
        sys.exit(
            "the prose above has more of these constructions than its limit: see CONTRIBUTING.md, --show lists them"
        )


if __name__ == "__main__":
    main()
