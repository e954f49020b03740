"""Selection of the log's files for deletion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.writer.retention_policy import MOST_FILES, DiskUse, ExpiredLogFile, RetentionPolicy, files_to_delete

HOUR_MS = 3_600_000
NOW_MS = 1_000 * HOUR_MS
SIZE = 100
ROOMY = DiskUse(10, 10_000)
KEEP_ALL = RetentionPolicy(0, 0)
TEN_HOURS = RetentionPolicy(10 * HOUR_MS, 0)


def table(*ages_h: float | None, needed_from: int = 1 << 63) -> Iterator[ExpiredLogFile]:
    """Yield files whose newest records have these ages in hours."""
    for i, age_h in enumerate(ages_h):
        newest_ms = None if age_h is None else round(NOW_MS - age_h * HOUR_MS)
        yield ExpiredLogFile(i * SIZE, (i + 1) * SIZE, newest_ms, SIZE, is_needed=(i + 1) * SIZE > needed_from)


def deleted(policy: RetentionPolicy, *ages_h: float | None, disk: DiskUse = ROOMY, needed_from: int = 1 << 63) -> int:
    """Return the number of deleted files; they are the first ones."""
    chosen = files_to_delete(table(*ages_h, needed_from=needed_from), policy, now_ms=NOW_MS, disk=disk)
    assert [file.start for file in chosen] == [i * SIZE for i in range(len(chosen))]
    return len(chosen)


@pytest.mark.parametrize(
    ("ages_h", "count"),
    [
        ((), 0),
        ((9.999,), 0),
        ((10,), 0),  # not older than ten hours
        ((10.001,), 1),
        ((500, 11, 9, 8), 2),
        ((9, 500), 0),  # never a file after one that stays
    ],
)
def test_files_whose_newest_record_is_too_old_are_deleted(ages_h: tuple[float, ...], count: int) -> None:
    """Deletion goes from the front to the first file that stays."""
    assert deleted(TEN_HOURS, *ages_h) == count


def test_no_file_is_deleted_without_a_retention_limit() -> None:
    """Neither age nor a full disk matters."""
    assert not KEEP_ALL.is_on()
    assert deleted(KEEP_ALL, 1e6, 1e6, disk=DiskUse(9_999, 10_000)) == 0


@pytest.mark.parametrize(
    ("ages_h", "count"),
    [
        ((None,), 0),
        ((None, 9), 0),
        ((None, 11), 2),
        ((11, None, 9), 1),
        ((11, None, None, 11, 9), 4),
        ((*[None] * 12, 11), MOST_FILES),  # the others in the next run
    ],
)
def test_a_file_without_a_readable_record_is_as_old_as_the_next_one(
    ages_h: tuple[float | None, ...], count: int
) -> None:
    assert deleted(TEN_HOURS, *ages_h) == count


@pytest.mark.parametrize(("needed_from", "count"), [(0, 0), (SIZE - 1, 0), (SIZE, 1), (250, 2), (300, 3), (10_000, 4)])
def test_files_that_another_member_needs_are_not_deleted_by_age(needed_from: int, count: int) -> None:
    assert deleted(TEN_HOURS, 12, 12, 12, 12, needed_from=needed_from) == count
    full = DiskUse(8_600, 10_000)
    by_disk = deleted(RetentionPolicy(10 * HOUR_MS, 85), 12, 12, 12, 12, disk=full, needed_from=needed_from)
    assert by_disk == max(count, 1), "a full disk would stop the writer"


@pytest.mark.parametrize(
    ("used_bytes", "count"),
    [(8_500, 0), (8_501, 1), (8_600, 1), (8_601, 2), (9_999, MOST_FILES)],
)
def test_the_oldest_files_are_deleted_at_any_age_above_the_disk_threshold(used_bytes: int, count: int) -> None:
    """They are enough to get below the threshold, and at most the limit of a run; unreadable ones count too."""
    policy = RetentionPolicy(0, 85)
    disk = DiskUse(used_bytes, 10_000)
    assert deleted(policy, *[0.0] * 30, disk=disk) == count
    assert deleted(policy, *[None] * 30, disk=disk) == count


def test_deletion_by_age_continues_below_the_disk_threshold() -> None:
    """The first file is deleted for the disk, the second for its age."""
    assert deleted(RetentionPolicy(10 * HOUR_MS, 85), 0, 11, 9, disk=DiskUse(8_501, 10_000)) == 2
    assert deleted(TEN_HOURS, 0, 11, disk=DiskUse(9_999, 10_000)) == 0


def test_no_file_is_read_after_the_first_one_kept() -> None:
    """Reading an age costs a walk over the file."""
    looked = []

    def files() -> Iterator[ExpiredLogFile]:
        for file in table(11, 9, 11, 11):
            looked.append(file.start)
            yield file

    files_to_delete(files(), TEN_HOURS, now_ms=NOW_MS, disk=ROOMY)
    assert looked == [0, SIZE]
