"""The form of an answer: the format that an Accept header selects, and its options."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.exceptions import HTTPException

from services.indexer.query.pull.answer_form import AnswerForm, BodyFormat
from services.indexer.query.schema.query_arguments import PullLimits
from tidemark.errors import ArgumentIllegalError
from tidemark.read.messages.arrow_stream import TableForm

ASKED = PullLimits()


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
    assert AnswerForm.of(ASKED, accept).body_format is expected


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "image/*, text/*"])
def test_an_unacceptable_accept_header_is_406(accept: str) -> None:
    with pytest.raises(HTTPException) as caught:
        AnswerForm.of(ASKED, accept)
    assert caught.value.status_code == 406


OPTIONS = [
    ({"columns": ["body,tag"]}, BodyFormat.ARROW),
    ({"dictionaries": "true"}, BodyFormat.ARROW),
    ({"compression": "lz4"}, BodyFormat.ARROW),
    ({"verify": "reader"}, BodyFormat.RECORDS),
]


@pytest.mark.parametrize("body_format", BodyFormat)
@pytest.mark.parametrize(("asked", "only"), OPTIONS)
def test_an_option_of_another_format_is_refused(
    asked: dict[str, Any], only: BodyFormat, body_format: BodyFormat
) -> None:
    limits = PullLimits.model_validate(asked)
    if body_format is only:
        assert AnswerForm.of(limits, body_format.value).body_format is only
        return
    with pytest.raises(ArgumentIllegalError, match=f"^{next(iter(asked))}: .* send Accept: {only.value}") as refused:
        AnswerForm.of(limits, body_format.value)
    assert refused.value.facts == {"argument": next(iter(asked))}


def test_an_option_with_its_default_is_accepted_with_every_format() -> None:
    limits = PullLimits.model_validate({"columns": [], "dictionaries": "false", "verify": "service"})
    assert all(AnswerForm.of(limits, one.value).table == TableForm([]) for one in BodyFormat)
