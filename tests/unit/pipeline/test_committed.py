"""The committed offset that a task follows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from services.indexer.pipeline.committed import CommittedOffset
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from tidemark.store import wake
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.originals.terms import Term, TermsFile, begin_term
from tidemark.store.storage import DiskStorage

STORAGE = DiskStorage()
ABOVE_4_GIB = (3 << 32) + 5  # the offset's low word alone is 5


class Writer:
    """The writer's part: it begins terms and stores the committed offset."""

    def __init__(self, plan: EpochPlan) -> None:
        self._plan = plan
        plan.paths.terms.parent.mkdir(parents=True)

    def begin_term(self, recovered_end: int) -> None:
        begin_term(self._plan.paths.terms, recovered_end, STORAGE)

    def commit(self, physical_offset: int) -> None:
        checkpoint = Checkpoint.open_to_write(self._plan.paths.checkpoint, STORAGE)
        checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, physical_offset)
        wake.wake(checkpoint.committed_word_address())
        checkpoint.close()

    def restart_machine(self) -> None:
        """Make the last term one of an earlier boot."""
        terms = self._plan.paths.terms
        number, recovered_end, _ = terms.read_text().splitlines()[-1].split()
        terms.unlink()
        terms.with_name("terms.copy").unlink()
        terms.write_text(f"{number} {recovered_end} earlier-boot\n")


@pytest.fixture
def plan(tmp_path: Path) -> EpochPlan:
    return make_plan(PipelineSettings(store_root=tmp_path))


@pytest.fixture
def writer(plan: EpochPlan) -> Writer:
    return Writer(plan)


@pytest.fixture
def committed(plan: EpochPlan) -> Iterator[CommittedOffset]:
    made = CommittedOffset(plan)
    yield made
    made.close()


def test_a_store_without_a_writer_has_nothing_committed(committed: CommittedOffset) -> None:
    assert committed.read() == 0
    assert committed.term().number == 0


def test_the_offset_of_the_running_term_is_read_after_each_commit(committed: CommittedOffset, writer: Writer) -> None:
    """The task may start before the writer has created the checkpoint."""
    writer.begin_term(0)
    assert committed.read() == 0
    for physical_offset in (120, ABOVE_4_GIB):
        writer.commit(physical_offset)
        assert committed.read() == physical_offset


@pytest.mark.parametrize("size", [0, 40])
def test_a_checkpoint_that_has_not_its_full_size_yet_has_nothing_committed(
    plan: EpochPlan, committed: CommittedOffset, writer: Writer, size: int
) -> None:
    """The writer creates the file before it sets its size."""
    writer.begin_term(0)
    plan.paths.checkpoint.write_bytes(bytes(size))
    assert committed.read() == 0
    plan.paths.checkpoint.unlink()
    writer.commit(700)
    assert committed.read() == 700


def test_an_offset_from_before_a_reboot_does_not_count_until_the_next_term(
    committed: CommittedOffset, writer: Writer
) -> None:
    """After a reboot the file has any value that reached the disk, perhaps one past the log's end."""
    writer.begin_term(0)
    writer.commit(500)
    writer.restart_machine()
    assert committed.read() == 0
    writer.begin_term(400)
    writer.commit(400)
    assert committed.read() == 400


def test_the_terms_are_looked_at_once_per_round(
    committed: CommittedOffset, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A follower reads the offset for each message, and the term once after its build."""
    writer.begin_term(0)
    writer.commit(500)
    assert committed.read() == 500
    looks: list[TermsFile] = []
    current = TermsFile.current

    def noted(file: TermsFile) -> Term:
        looks.append(file)
        return current(file)

    monkeypatch.setattr(TermsFile, "current", noted)
    assert [committed.read(), committed.read(), len(looks)] == [500, 500, 0]
    writer.begin_term(400)
    assert (committed.read(), committed.term()[:2], len(looks)) == (500, (2, 400), 1)


def test_a_limit_of_the_plan_replaces_the_committed_offset(plan: EpochPlan, writer: Writer) -> None:
    """A drain without a writer has found the log's end itself."""
    writer.begin_term(0)
    writer.commit(500)
    limited = CommittedOffset(replace(plan, limit=300))
    assert limited.read() == 300
    limited.close()


def test_an_offset_of_an_older_term_is_lowered_to_the_least_end_recovered_since(
    committed: CommittedOffset, writer: Writer
) -> None:
    for recovered_end in (0, 700, 400, 600):
        writer.begin_term(recovered_end)
    assert committed.term()[:2] == (4, 600)
    lowered = [committed.clamp(900, of_term=term) for term in (1, 2, 3, 4)]
    assert lowered == [400, 400, 600, 900]
    assert committed.clamp(50, of_term=1) == 50


@pytest.mark.skipif(wake._FUTEX is None, reason="without a futex a wait is a short sleep")
def test_a_wait_lasts_until_the_next_commit(committed: CommittedOffset, writer: Writer) -> None:
    """The kernel compares the low word of the offset, which is stored big-endian."""
    writer.begin_term(0)
    writer.commit(ABOVE_4_GIB)
    waiting = threading.Thread(target=committed.wait, args=(committed.read(), 60))
    waiting.start()
    waiting.join(0.05)
    assert waiting.is_alive()
    writer.commit(ABOVE_4_GIB + 1)
    waiting.join(10)
    assert not waiting.is_alive()


def test_a_commit_between_the_read_and_the_wait_is_not_missed(committed: CommittedOffset, writer: Writer) -> None:
    writer.begin_term(0)
    writer.commit(100)
    seen = committed.read()
    writer.commit(200)
    waiting = threading.Thread(target=committed.wait, args=(seen, 60), daemon=True)
    waiting.start()
    waiting.join(10)
    assert not waiting.is_alive()
