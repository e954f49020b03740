"""The division of a topic's day into files, and the differences of two digests."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.archive.digest import Digest, DigestKey, differences
from tidemark.archive.layout import lay_out


def of(rows: int, first: int = 0, *, size: int = 100) -> Digest:
    """Return a digest of *rows* messages of *size* bytes each."""
    return Digest(rows, first, first + rows - 1, 10 * rows, 77 * rows, rows * size)


def part_of(group: dict[str, Any], queue_offset: int) -> int:
    """Return the part as the plan's expression computes it."""
    number = (group["rows_before"] + queue_offset - group["first_offset"]) // group["rows_a_part"]
    return int(min(group["last_part"], group["first_part"] + number))


def test_the_queues_of_a_day_are_cut_into_equal_parts() -> None:
    """Messages are in the order of queues and offsets; another topic or day begins another part."""
    digests = {
        DigestKey("a", "2026-01-01", 0): of(30, 5),
        DigestKey("a", "2026-01-01", 1): of(50),
        DigestKey("a", "2026-01-02", 0): of(10, 35),
        DigestKey("b", "2026-01-01", 0): of(1),
    }
    layout = lay_out(digests, file_bytes=2_000)
    groups = {DigestKey(one["topic"], one["day"], one["queue_id"]): one for one in layout.groups.to_pylist()}
    assert (layout.parts, layout.full_files) == (4 + 1 + 1, 5)
    found = [
        part_of(groups[group], offset)
        for group in sorted(digests)
        for offset in range(digests[group].min_offset, digests[group].max_offset + 1)
    ]
    assert found == sorted(found)
    assert [found.count(part) for part in range(6)] == [20, 20, 20, 20, 10, 1]


def test_there_are_at_most_as_many_files_as_messages() -> None:
    """The size of the messages does not matter."""
    assert lay_out({DigestKey("a", "2026-01-01", 0): of(3, size=1 << 22)}, file_bytes=1).parts == 3
    assert lay_out({}, file_bytes=1).parts == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": 4}, "5 messages, the archive 4"),
        ({"min_offset": 1}, "messages 0 to 4, the archive 1 to 4"),
        ({"max_physical_offset": 1}, "messages 0 to 4"),
        ({"content": 1}, "messages differ"),
    ],
)
def test_a_digest_difference_names_the_field(changes: dict[str, int], said: str) -> None:
    """The difference names the field and the place."""
    group = DigestKey("a", "2026-01-01", 0)
    assert differences({group: of(5)}, {group: of(5)}) == []
    [(found, text)] = differences({group: of(5)}, {group: of(5)._replace(**changes)})
    assert found == group
    assert said in text


def test_groups_that_only_one_side_has_are_reported() -> None:
    group = DigestKey("a", "2026-01-01", 0)
    assert [text for _, text in differences({group: of(5)}, {})] == ["only the store has this queue and day"]
    assert [text for _, text in differences({}, {group: of(5)})] == ["only the archive has this queue and day"]
