"""The guard of a service: callers of single requests and of long streams."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import pytest

from tests.access_files import AccessFolder, Issuer
from tidemark.access.access_file import AccessFile
from tidemark.access.audit import Audit
from tidemark.access.guard import Caller, Guard
from tidemark.access.identity import Presented
from tidemark.access.rate_limits import RateLimits
from tidemark.access.right import Action, on_topic
from tidemark.errors import ForbiddenError, RateLimitedError, StoreError, UnauthenticatedError
from tidemark.settings.reloaded_files import ReloadedFiles

PUB, SUB = on_topic("t", Action.PUB), on_topic("t", Action.SUB)


class Lines(logging.Handler):
    """Keeps the logged lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Stand:
    """A guard over an access file, with its logged lines."""

    def __init__(self, folder: Path, rates: RateLimits | None = None) -> None:
        self.files = AccessFolder(folder)
        self.faults: list[StoreError | None] = []
        handler = Lines()
        self.lines = handler.lines
        self.access = ReloadedFiles(AccessFile(self.files.path), every_ms=10_000, on_reload=self.faults.append)
        self.audit = Audit(handler, service="test", repeat_ms=60_000)
        self.guard = Guard(self.access, rates or RateLimits(), self.audit)

    def caller(self, token: str | None) -> Caller:
        """Return a caller that presents *token*."""
        return self.guard.admit(Presented(token, None), address="10.0.0.1", action="Do")

    def deeds(self) -> list[tuple[str, str, str, int]]:
        """Return the (principal, resource, outcome, count) of each line."""
        return [
            (deed["principal"], deed["resource"], deed["outcome"], deed["count"])
            for deed in map(json.loads, self.lines)
        ]


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    """Return a guard without principals."""
    return Stand(tmp_path)


def test_without_an_access_file_every_action_is_allowed() -> None:
    """The caller is anonymous."""
    caller = Guard(None, RateLimits(), None).admit(Presented(None, None), address="10.0.0.1", action="Do")
    caller.require(PUB)
    assert caller.name == ""


def test_a_refusal_is_audited_with_principal_and_address(stand: Stand) -> None:
    """The line does not contain the token."""
    token = stand.files.principal("orders")
    stand.files.rule("orders", ["Pub"], "Topic:t")
    stand.access.look()
    caller = stand.caller(token)
    caller.require(PUB)
    with pytest.raises(ForbiddenError, match="orders is not allowed to Sub Topic:t"):
        caller.require(SUB)
    with pytest.raises(UnauthenticatedError):
        stand.caller("x")
    assert stand.deeds() == [
        ("orders", "Pub Topic:t", "ALLOWED", 1),
        ("orders", "Sub Topic:t", "FORBIDDEN", 1),
        ("", "", "UNAUTHENTICATED", 1),
    ]
    assert {json.loads(line)["address"] for line in stand.lines} == {"10.0.0.1"}
    assert token not in "".join(stand.lines)


def test_repeated_actions_are_counted_in_one_audit_line(stand: Stand) -> None:
    """Counting keeps the cost of reads and writes low, and refused callers cannot fill a disk."""
    token = stand.files.principal("orders")
    stand.files.rule("orders", ["Pub"], "Topic:t")
    stand.access.look()
    for _ in range(5):
        stand.caller(token).require(PUB)
    assert stand.deeds() == [("orders", "Pub Topic:t", "ALLOWED", 1)]
    stand.audit.log_repeats()
    assert stand.deeds()[1:] == [("orders", "Pub Topic:t", "ALLOWED", 4)]
    stand.audit.log_repeats()
    assert len(stand.lines) == 2


def test_the_memory_for_repeated_actions_is_bounded(stand: Stand) -> None:
    """A caller that asks for a hundred thousand topics is fully logged within a bounded memory."""
    token = stand.files.principal("orders")
    stand.access.look()
    caller = stand.caller(token)
    for number in range(30_000):
        with pytest.raises(ForbiddenError):
            caller.require(on_topic(f"t{number}", Action.SUB))
    assert len(stand.lines) == 30_000
    assert len(stand.audit._repeats) <= 10_000


def test_a_stream_loses_revoked_rights(stand: Stand) -> None:
    """The current rules apply, not those at the stream's start; a removed principal is unknown."""
    token = stand.files.principal("orders")
    stand.files.rule("orders", ["All"], "*")
    stand.access.look()
    caller = stand.caller(token)
    caller.require(PUB)
    stand.files.rule("orders", ["Pub"], "Topic:t", decision="Deny")
    stand.access.look()
    with pytest.raises(ForbiddenError):
        caller.require(PUB)
    stand.files.forget("orders")
    stand.access.look()
    with pytest.raises(UnauthenticatedError):
        caller.require(SUB)
    assert caller.name == ""


def test_a_stream_is_refused_after_its_token_expires(stand: Stand) -> None:
    """A stream does not extend its token's life."""
    issuer = Issuer()
    stand.files.jwt(issuer, leeway_s=0)
    stand.files.rule("jwt:alice", ["Pub"], "Topic:t")
    stand.access.look()
    caller = stand.caller(issuer.token(exp=time.time() + 1.2))
    caller.require(PUB)
    time.sleep(1.3)
    with pytest.raises(UnauthenticatedError, match="expired"):
        caller.require(PUB)


def test_an_invalid_access_file_keeps_the_previous_rules(stand: Stand) -> None:
    """Callers with access keep it, others get none, and the fault is logged once."""
    token = stand.files.principal("orders")
    stand.files.rule("orders", ["Pub"], "Topic:t")
    stand.access.look()
    stand.files.path.write_text("version = 1\n[[rule]]\n")
    stand.access.look()
    stand.access.look()
    stand.caller(token).require(PUB)
    assert stand.access.reload_failed
    assert [fault and fault.message.partition(": ")[2][:6] for fault in stand.faults] == [None, "rule.0"]


def test_the_request_rate_applies_to_each_principal(tmp_path: Path) -> None:
    """Principals do not share a rate; a principal's own limit overrides the service's."""
    stand = Stand(tmp_path, RateLimits(requests_per_s=3))
    tokens = [stand.files.principal("a"), stand.files.principal("b"), stand.files.principal("c", max_requests_per_s=0)]
    stand.access.look()
    callers = [stand.caller(token) for token in tokens]
    for caller in callers[:2]:
        for _ in range(2):
            caller.take_request()
        with pytest.raises(RateLimitedError) as told:
            caller.take_request()
        assert told.value.limit == 3
        assert isinstance(told.value.retry_after_ms, int)
        assert 1 <= told.value.retry_after_ms <= 400
    for _ in range(100):
        callers[2].take_request()


def test_a_principals_own_limit_applies_without_one_of_the_service(tmp_path: Path) -> None:
    stand = Stand(tmp_path)
    token = stand.files.principal("a", max_requests_per_s=2)
    stand.access.look()
    caller = stand.caller(token)
    caller.take_request()
    with pytest.raises(RateLimitedError):
        caller.take_request()


def test_token_guesses_are_rate_limited_by_address(tmp_path: Path) -> None:
    """Each address has its own rate; a known caller is not limited by another one at its address."""
    stand = Stand(tmp_path, RateLimits(requests_per_s=3))
    token = stand.files.principal("orders")
    stand.access.look()
    for _ in range(3):
        with pytest.raises(UnauthenticatedError):
            stand.caller("guess")
    with pytest.raises(RateLimitedError):
        stand.caller("guess")
    assert stand.caller(token).name == "orders"
    assert stand.guard.refused == {"UNAUTHENTICATED": 4, "RATE_LIMITED": 1}


def test_a_removed_principal_loses_its_own_rate(tmp_path: Path) -> None:
    """Its requests are then limited as those of any unknown caller at its address."""
    stand = Stand(tmp_path, RateLimits(requests_per_s=3))
    token = stand.files.principal("unlimited", max_requests_per_s=0)
    stand.access.look()
    caller = stand.caller(token)
    for _ in range(10):
        caller.admit()
    stand.files.path.write_text("version = 1\n")
    stand.access.look()
    for _ in range(3):
        with pytest.raises(UnauthenticatedError):
            caller.admit()
    with pytest.raises(RateLimitedError):
        caller.admit()


def test_a_rate_limit_bucket_refills_after_the_reported_time() -> None:
    """The bucket is full after the time that the refusal reported."""
    caller = Guard(None, RateLimits(requests_per_s=5), None).admit(
        Presented(None, None), address="1.2.3.4", action="Do"
    )
    for _ in range(4):
        caller.take_request()
    with pytest.raises(RateLimitedError) as told:
        caller.take_request()
    time.sleep((float(told.value.retry_after_ms or 0) + 20) / 1000)
    caller.take_request()


def test_a_batch_above_the_byte_rate_is_accepted_alone() -> None:
    """The limit is a rate: a batch that the service accepts must not wait for ever."""
    rates = RateLimits(append_bytes_per_s=1_000, greatest_append_bytes=4_000)
    caller = Guard(None, rates, None).admit(Presented(None, None), address="1.2.3.4", action="Do")
    caller.take_append(5_000)
    with pytest.raises(RateLimitedError) as told:
        caller.take_append(1_000)
    assert 900 <= float(told.value.retry_after_ms or 0) <= 1_100
