"""The response format that an Accept header selects."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException

from services.indexer.query.pull.pull_response import BodyFormat, accepted_format


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (None, BodyFormat.JSON),
        ("", BodyFormat.JSON),
        ("*/*", BodyFormat.JSON),
        ("application/*;q=0.2", BodyFormat.JSON),
        ("Application/JSON", BodyFormat.JSON),
        ("application/vnd.apache.arrow.stream", BodyFormat.ARROW),
        ("text/html,application/octet-stream;q=0.3,*/*;q=0.1", BodyFormat.RECORDS),
        ("application/json;q=0,application/x-ndjson", BodyFormat.NDJSON),
        ("application/json;q=nonsense,application/x-ndjson;q=0.1", BodyFormat.NDJSON),
    ],
)
def test_an_accept_header_selects_the_format(accept: str | None, expected: BodyFormat) -> None:
    assert accepted_format(accept) is expected


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*, text/*"])
def test_an_unacceptable_accept_header_is_406(accept: str) -> None:
    with pytest.raises(HTTPException) as caught:
        accepted_format(accept)
    assert caught.value.status_code == 406
