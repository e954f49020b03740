"""`tidemark/writer/terms`: a line per term of the writer, `<term> <recovered end> <boot id>`, synced before it serves.

On start, a writer may cut bytes that an indexer has already indexed (a torn tail after a power cut). A process with an
offset of an older term therefore uses the least of that offset and the recovered ends since.

The boot id shows whether the machine has restarted since. If not, the mapped confirm offset is the value that the
writer last stored. After a reboot it is whatever reached the disk, and is invalid until the next term begins.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tidemark.store.originals.checked_copy import FileRules, read_checked, write_checked
from tidemark.store.storage import Storage


class Term(NamedTuple):
    """One run of the writer. recovered_end: the log's end at its start; boot_id: the machine's boot at its start."""

    number: int
    recovered_end: int
    boot_id: str = ""

    def is_of_this_boot(self) -> bool:
        """Return True if the machine has not restarted since the term began, or if the system has no boot ids."""
        return self.number > 0 and self.boot_id == machine_boot_id()


@functools.cache
def machine_boot_id() -> str:
    """Return the identity of the kernel's current boot; "-" if the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or "-"
    except OSError:
        return "-"


NO_TERM = Term(0, 0)  # of a directory that no writer of ours has opened


def read_terms(path: Path) -> list[Term]:
    """Return all terms, oldest first. A line that a crash cut off is ignored.

    Raises CorruptStoreError if the file and its copy are both damaged.
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
    """Return all terms of a whole file. Raises ValueError for an invalid line or nonconsecutive numbers."""
    terms = [term for term in map(_term, _lines(data)) if term is not None]
    numbers = [term.number for term in terms]
    if len(terms) != len(_lines(data)) or not terms or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError("the file is not a list of consecutive terms")
    return terms


TERMS_FORM = FileRules(_parse, lambda terms: (terms[-1].number,))


def current_term(path: Path) -> Term:
    """Return the last term; NO_TERM if there is none."""
    terms = read_terms(path)
    return terms[-1] if terms else NO_TERM


def begin_term(path: Path, recovered_end: int, storage: Storage) -> Term:
    """Start a new term, durably."""
    terms = read_terms(path)
    term = Term(terms[-1].number + 1 if terms else 1, recovered_end, machine_boot_id())
    lines = "".join(f"{number} {end} {boot_id}\n" for number, end, boot_id in [*terms, term])
    write_checked(path, lines.encode(), storage)
    return term


def clamp(offset: int, *, of_term: int, terms: Sequence[Term]) -> int:
    """Lower a physical *offset* that was valid in term *of_term* to the least recovered end of the terms since.

    Terms are in ascending order, so nothing is compared if the last one is *of_term*.
    """
    if not terms or terms[-1].number <= of_term:
        return offset
    return min([offset, *(term.recovered_end for term in terms if term.number > of_term)])


class TermsFile:
    """The terms file for a frequent reader, which loads the file again only after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)  # a Path would be converted for each `stat`
        self._signature: tuple[int, int] | None = (0, 0)  # differs from every signature and from None
        self.known: list[Term] = []  # at the last read; replaced by a new list after a change

    def terms(self) -> list[Term]:
        """Return all terms, oldest first."""
        try:
            status = os.stat(self._name)
            signature = (status.st_ino, status.st_mtime_ns)
        except FileNotFoundError:
            signature = None
        if signature != self._signature:
            self.known = read_terms(self._path)  # of the copy, if the file is gone
            self._signature = signature
        return self.known

    def current(self) -> Term:
        """Return the last term; NO_TERM if there is none."""
        terms = self.terms()
        return terms[-1] if terms else NO_TERM

    def clamp(self, offset: int, *, of_term: int) -> int:
        """Lower *offset* as the function `clamp` does."""
        return clamp(offset, of_term=of_term, terms=self.terms())
