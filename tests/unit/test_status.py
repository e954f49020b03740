"""The table of failures on the wire."""

from __future__ import annotations

import http
import re

import grpc
import pytest

from tests.unit.test_errors import leaves_of
from tidemark import errors, status
from tidemark.errors import StoreError
from tidemark.status import BY_REASON, STATUS, UNKNOWN, error_of, status_of

PUT_STATUSES = [  # docs/format.md §15
    "PUT_OK",
    "FLUSH_DISK_TIMEOUT",
    "FLUSH_SLAVE_TIMEOUT",
    "SLAVE_NOT_AVAILABLE",
    "SERVICE_NOT_AVAILABLE",
    "CREATE_MAPPED_FILE_FAILED",
    "MESSAGE_ILLEGAL",
    "PROPERTIES_SIZE_EXCEEDED",
    "OS_PAGE_CACHE_BUSY",
    "UNKNOWN_ERROR",
    "IN_SYNC_REPLICAS_NOT_ENOUGH",
    "PUT_TO_REMOTE_BROKER_FAIL",
    "LMQ_CONSUME_QUEUE_NUM_EXCEEDED",
    "WHEEL_TIMER_FLOW_CONTROL",
    "WHEEL_TIMER_MSG_ILLEGAL",
    "WHEEL_TIMER_NOT_ENABLE",
]


def test_every_error_class_is_in_the_status_table_once() -> None:
    assert set(STATUS) == leaves_of(StoreError)


def test_reasons_are_unique_and_stable_words() -> None:
    """A reason is in capitals, names one leaf, and differs from the reason of other exceptions."""
    reasons = [entry.reason for entry in STATUS.values()]
    assert len(set(reasons)) == len(reasons)
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", reason) for reason in reasons)
    assert UNKNOWN.reason not in reasons


def test_status_codes_exist_in_grpc_and_http() -> None:
    """gRPC knows each code, HTTP each status, and RocketMQ each name."""
    for entry in [*STATUS.values(), UNKNOWN]:
        assert grpc.StatusCode[entry.grpc_code] is not grpc.StatusCode.OK
        assert 400 <= http.HTTPStatus(entry.http_status) < 600
        assert entry.put_status in ["", *PUT_STATUSES]


@pytest.mark.parametrize(
    ("leaf", "reason", "grpc_code", "http_status"),
    [
        (errors.MessageSizeExceededError, "MESSAGE_SIZE_EXCEEDED", "INVALID_ARGUMENT", 413),
        (errors.OffsetOutOfRangeError, "OFFSET_OUT_OF_RANGE", "OUT_OF_RANGE", 416),
        (errors.CorruptMessageError, "CORRUPT_MESSAGE", "DATA_LOSS", 500),
        (errors.StoreClosedError, "STORE_CLOSED", "UNAVAILABLE", 503),
    ],
)
def test_documented_status_rows_are_stable(
    leaf: type[StoreError], reason: str, grpc_code: str, http_status: int
) -> None:
    """These rows are documented outside of the code."""
    assert STATUS[leaf][:3] == (reason, grpc_code, http_status)


@pytest.mark.parametrize("leaf", STATUS)
def test_a_reason_maps_back_to_its_error_class(leaf: type[StoreError]) -> None:
    """A client raises the service's error again, with all its facts."""
    error = error_of(status_of(leaf("text")).reason, "text", limit=3, reason="LENGTH", message="m")
    assert type(error) is leaf
    assert error.facts == {"limit": 3, "reason": "LENGTH", "message": "m"}


def test_an_error_outside_the_status_table_is_internal() -> None:
    """Bugs and inner nodes of the tree have no reason of their own; an unknown reason is a plain StoreError."""
    assert status_of(KeyError("x")) == status_of(StoreError("x")) == UNKNOWN
    assert type(error_of("NEVER_HEARD_OF", "text")) is StoreError
    assert BY_REASON.keys() == {entry.reason for entry in STATUS.values()}
    assert status.DOMAIN
