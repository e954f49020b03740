"""`tidemark/writer/terms`: a line a term of the writer: `<term> <recovered end> <boot id>`, synced before it serves.

A writer may cut, on start, what an indexer has already built on (a torn tail after a power cut). Whoever holds a number
of an older term takes the least of it and the recovered ends since.

The boot id tells whether the machine has been up ever since: then the mapped confirm offset is what the writer stored
last. After a reboot it is what happened to reach the disk, and means nothing before the next term begins.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidemark.store.originals.checked_copy import Form, read_checked, write_checked
from tidemark.store.storage import Storage


class Term(NamedTuple):
    """One life of the writer. recovered_end: where the log ended when it began; boot_id: of the machine then."""

    number: int
    recovered_end: int
    boot_id: str = ""

    def is_of_this_boot(self) -> bool:
        """Whether the machine has not been started anew since; True where there is no telling."""
        return self.number > 0 and self.boot_id == machine_boot_id()


@functools.cache
def machine_boot_id() -> str:
    """Identity of the running kernel's boot; "-" where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or "-"
    except OSError:
        return "-"


NO_TERM = Term(0, 0)  # a directory that no writer of ours has opened


def read_terms(path: Path) -> list[Term]:
    """Return all terms, oldest first; a line cut off by a crash does not count.

    Raises CorruptStoreError when the file and its copy are both damaged.
    """
    data = read_checked(path, TERMS_FORM).data
    return [] if data is None else [term for term in map(_term, _lines(data)) if term is not None]


def _lines(data: bytes) -> list[str]:
    return data.decode("ascii", "replace").splitlines(keepends=True)


def _term(line: str) -> Term | None:
    words = line.split()
    if line.endswith("\n") and len(words) == 3 and words[0].isdigit() and words[1].isdigit():
        return Term(int(words[0]), int(words[1]), words[2])
    return None


def _parse(data: bytes) -> list[Term]:
    """Return all terms of a whole file. Raises ValueError for a line that is none, or a number out of its row."""
    terms = [term for term in map(_term, _lines(data)) if term is not None]
    numbers = [term.number for term in terms]
    if len(terms) != len(_lines(data)) or not terms or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError("this is no file of terms")
    return terms


TERMS_FORM = Form(_parse, lambda terms: (terms[-1].number,))


def current_term(path: Path) -> Term:
    """The last term; NO_TERM when there was none."""
    terms = read_terms(path)
    return terms[-1] if terms else NO_TERM


def begin_term(path: Path, recovered_end: int, storage: Storage) -> Term:
    """Start a new term, durable when this returns."""
    terms = read_terms(path)
    term = Term(terms[-1].number + 1 if terms else 1, recovered_end, machine_boot_id())
    lines = "".join(f"{number} {end} {boot_id}\n" for number, end, boot_id in [*terms, term])
    write_checked(path, lines.encode(), storage)
    return term


def clamp(offset: int, *, of_term: int, terms: Sequence[Term]) -> int:
    """What is left of a physical *offset* that was true in term *of_term*: at most each recovered end since."""
    return min([offset, *(term.recovered_end for term in terms if term.number > of_term)])


class TermsFile:
    """The terms file for a reader that asks often: read again only when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int] | None = (0, 0)  # of no file
        self.known: list[Term] = []  # as of the last look; another list once the file has changed

    def terms(self) -> list[Term]:
        """All terms, oldest first."""
        try:
            status = os.stat(self._path)
            signature = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:
            signature = None
        if signature != self._signature:
            self.known = read_terms(self._path)  # of the copy, where the file is gone
            self._signature = signature
        return self.known

    def current(self) -> Term:
        """The last term; NO_TERM when there was none."""
        terms = self.terms()
        return terms[-1] if terms else NO_TERM

    def clamp(self, offset: int, *, of_term: int) -> int:
        """As the function `clamp`."""
        return clamp(offset, of_term=of_term, terms=self.terms())
