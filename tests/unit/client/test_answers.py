"""The types of Query's answers and parameters are those of the service's OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from pydantic import BaseModel

from services.indexer.query.schema import query_arguments, request_bodies, responses
from tidemark.client import answers
from tidemark.read.messages.body import BodyEncoding


def shape(kind: Any) -> Any:
    """Return the fields of a TypedDict or a model with their types, and so on for the types of these."""
    if is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, BaseModel)):
        hints = get_type_hints(kind)
        return {name: shape(hints[name]) for name in hints if name != "model_config"}
    if get_origin(kind) is list:
        return [shape(one) for one in get_args(kind)]
    return kind


@pytest.mark.parametrize(
    ("typed", "model"),
    [
        (answers.Watermark, responses.WatermarkAnswer),
        (answers.WatermarkAnswer, responses.WatermarkDetailAnswer),
        (answers.MessageAnswer, responses.MessageAnswer),
        (answers.SkippedAnswer, responses.SkippedAnswer),
        (answers.PullAnswer, responses.PullAnswer),
        (answers.MessagesAnswer, responses.MessagesAnswer),
        (answers.SearchAnswer, responses.SearchAnswer),
        (answers.LookupAnswer, responses.LookupAnswer),
        (answers.QueueAnswer, responses.QueueDetailAnswer),
        (answers.OffsetAnswer, responses.OffsetByTimeAnswer),
    ],
)
def test_an_answer_has_the_fields_of_the_document(typed: type, model: type[BaseModel]) -> None:
    assert is_typeddict(typed)
    assert shape(typed) == shape(model)


_FOLLOW = ("follow", "max_seconds", "heartbeat_ms")  # `Query` does not follow
_VERIFY = "verify"  # an argument of `record_pages` alone
_TABLE = ("columns", "dictionaries", "compression")  # of tables alone


@pytest.mark.parametrize(
    ("typed", "model", "not_typed"),
    [
        (answers.PullParameters, query_arguments.PullArguments, {"offset", _VERIFY, *_FOLLOW, *_TABLE}),
        (answers.TableParameters, query_arguments.PullArguments, {"offset", "body_encoding", _VERIFY, *_FOLLOW}),
        (answers.LookupParameters, query_arguments.MessageArguments, set()),
        (answers.SearchParameters, query_arguments.SearchArguments, {"key", "unique_key"}),
        (answers.BatchLookupParameters, request_bodies.LookupBody, {"keys", "unique_keys", "offsets"}),
        (answers.QueuePlace, request_bodies.LookedUpOffset, set()),
    ],
)
def test_a_request_has_the_parameters_of_the_document(typed: type, model: type[BaseModel], not_typed: set[str]) -> None:
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert set(get_type_hints(typed)) | not_typed == names


def test_the_encodings_are_those_of_the_service() -> None:
    assert answers.BodyEncoding == Literal[*(one.value for one in BodyEncoding)]
    assert answers.Semantics == Literal[*(one.value for one in query_arguments.Semantics)]
