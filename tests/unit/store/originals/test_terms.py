"""The writer's terms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.store.recording_storage import KilledHere, RecordingStorage
from tidemark.store.originals import terms as module
from tidemark.store.originals.terms import (
    NO_TERM,
    Term,
    TermsFile,
    begin_term,
    clamp,
    current_term,
    machine_boot_id,
    read_terms,
)
from tidemark.store.storage import DiskStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "writer" / "terms"


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_a_missing_terms_file_gives_no_term(path: Path) -> None:
    """No Tidemark writer has opened the directory."""
    assert (read_terms(path), current_term(path), TermsFile(path).current()) == ([], NO_TERM, NO_TERM)
    assert not NO_TERM.is_of_this_boot()


def test_terms_are_numbered_from_1_and_kept(path: Path) -> None:
    """Each start adds a line: number, recovered end, boot."""
    for end in (0, 500, 300):
        begin_term(path, end, DiskStorage())
    boot = machine_boot_id()
    assert path.read_text() == f"1 0 {boot}\n2 500 {boot}\n3 300 {boot}\n"
    assert current_term(path) == Term(3, 300, boot)
    assert current_term(path).is_of_this_boot()


def test_a_term_of_another_boot_is_recognised(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a reboot the mapped confirm offset is invalid until the next term."""
    begin_term(path, 0, DiskStorage())
    monkeypatch.setattr(module, "machine_boot_id", lambda: "another")
    assert not current_term(path).is_of_this_boot()


@pytest.mark.parametrize(
    "torn", ["2 50", "2 500 b", "2", "", "2 500", "2  \n", "x 500 b\n", "2 -5 b\n", "2 1 b c\n", "\xff\n"]
)
def test_a_torn_or_invalid_last_line_is_ignored(path: Path, torn: str) -> None:
    """A line is valid only with its line feed and its three words."""
    written(path, "1 100 a\n" + torn)
    assert read_terms(path) == [Term(1, 100, "a")]


def test_a_killed_start_leaves_the_terms_with_or_without_the_new_one(path: Path) -> None:
    """After a kill at any step the file is valid, and the next start continues the numbering."""
    begin_term(path, 10, DiskStorage())
    counting = RecordingStorage()
    begin_term(path, 20, counting)
    for step in range(len(counting.steps)):
        before = current_term(path).number
        with pytest.raises(KilledHere):
            begin_term(path, 30, RecordingStorage(die_before=step))
        assert current_term(path).number in (before, before + 1)
    assert begin_term(path, 40, DiskStorage()).number == current_term(path).number
    assert [term.number for term in read_terms(path)] == list(range(1, current_term(path).number + 1))


@pytest.mark.parametrize(
    ("offset", "of_term", "left"),
    [(1000, 4, 1000), (1000, 3, 900), (1000, 2, 300), (200, 1, 200), (1000, 0, 300), (1000, 9, 1000)],
)
def test_clamp_uses_the_least_recovered_end_of_later_terms(path: Path, offset: int, of_term: int, left: int) -> None:
    """The limit is the end up to which a reader of an older term may still read."""
    written(path, "1 0500 a\n2 800 a\n3 300 a\n4 900 a\n")
    assert clamp(offset, of_term=of_term, terms=read_terms(path)) == left
    assert TermsFile(path).clamp(offset, of_term=of_term) == left


def test_a_terms_reader_sees_a_new_term(path: Path) -> None:
    """The file is read again only after a change."""
    begin_term(path, 10, DiskStorage())
    reader = TermsFile(path)
    first = reader.terms()
    assert reader.terms() is first
    begin_term(path, 20, DiskStorage())
    assert reader.current().number == 2
    os.unlink(path)
    assert reader.current().number == 2, "the checked copy must have it"


def test_a_terms_reader_without_file_and_copy_sees_no_term(path: Path) -> None:
    assert TermsFile(path).current() == NO_TERM
