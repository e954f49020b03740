from __future__ import annotations

import pyarrow as pa
import pytest

from tidemark.client.rest.connections import Answer
from tidemark.client.rest.page import following_offset, has_messages, records_page, table_of


def headers(requested: int, following: int, end: int, *, count: int = 1, skipped: str = "[]") -> dict[str, str]:
    values = {"Requested-Offset": requested, "Next-Offset": following, "Min-Offset": 2, "Max-Offset": end}
    texts = {f"Tidemark-{name}": str(value) for name, value in values.items()}
    return {
        **texts,
        "Tidemark-Status": "FOUND",
        "Tidemark-Message-Count": str(count),
        "Tidemark-Skipped": skipped,
    }


@pytest.mark.parametrize(
    ("requested", "following", "end", "expected"),
    [
        (3, 6, 10, 6),
        (3, 10, 10, None),
        (3, 3, 10, None),
        (10, 10, 10, None),
    ],
    ids=["within", "to the end", "stuck at lost units", "at the end"],
)
def test_the_next_page_begins_at_the_next_offset_while_the_cursor_moves(
    requested: int, following: int, end: int, expected: int | None
) -> None:
    assert following_offset(headers(requested, following, end), at_end=False) == expected
    assert following_offset(headers(requested, following, end), at_end=True) == following, "a reader that waits"


def test_a_problem_has_no_next_page() -> None:
    assert following_offset({"Content-Type": "application/problem+json"}, at_end=True) is None


def test_a_page_without_messages_is_recognised_by_its_count() -> None:
    assert has_messages(headers(3, 6, 10))
    assert not has_messages(headers(3, 6, 10, count=0))


def test_a_page_of_records_has_its_facts_from_the_headers() -> None:
    skipped = '[{"queue_offset":4,"reason":"CRC"}]'
    page = records_page(Answer(200, headers(3, 6, 10, count=2, skipped=skipped), memoryview(b"records")))
    assert bytes(page.data) == b"records"
    assert page[1:] == ("FOUND", 3, 6, 2, 10, 2, [{"queue_offset": 4, "reason": "CRC"}])


def test_an_arrow_stream_answer_is_read_as_a_table() -> None:
    table = pa.table({"queue_offset": [3, 4], "body": [b"a", b"b"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    assert table_of(Answer(200, {}, memoryview(sink.getvalue()))).equals(table)
