"""Bytes to the remoting port of a real writer: never an unhandled error, and never a write."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tests.builders import wire_batch
from tests.conformance.remoting.traces import exchanges
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.fuzz.test_remoting import BODIES, FRAMES, JSON, NAMES, VALUES
from tests.integration.writer.harness import RunningWriter
from tests.property.strategies import HOSTILE_I4, TEXTS
from tests.remoting_client import RemotingClient
from tests.unit.remoting.frames import binary_header_bytes, frame_bytes
from tidemark.remoting.codes import RequestCode

pytestmark = pytest.mark.integration

FIELDS = [(one.code, one.fields) for one in exchanges()]
CODES = st.sampled_from(sorted({*map(int, RequestCode), 106, 206, -1, 0x7FFF}))


class Target(NamedTuple):
    """The writer, and the log events of its process."""

    writer: RunningWriter
    events: list[Any]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Run a writer whose disk is full: legal messages, too, get through every check and are not stored."""
    root = tmp_path_factory.mktemp("remoting") / "store"
    settings: dict[str, Any] = {"auto_create_topics": False, "min_free_disk_bytes": 1 << 60}
    with capture_logs() as events, RunningWriter(root, writer_remoting_listen="127.0.0.1:0", **settings) as writer:
        yield Target(writer, events)
        assert writer.info().max_physical_offset == 0, "something was stored"
    assert writer.failure is None


def check(target: Target, data: bytes, *, reads: bool) -> None:
    """Send *data*, and require that the writer answers others, has stored nothing and met no bug."""
    place = ("127.0.0.1", target.writer.remoting_port)
    with socket.create_connection(place, 10) as connection, contextlib.suppress(OSError):
        connection.sendall(data)
        if reads:
            connection.settimeout(0.02)
            connection.recv(1 << 16)
    with RemotingClient(target.writer.remoting_port) as client:
        assert client.call(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "%RETRY%g"}).code == 0
    bugs = [event for event in target.events if event["log_level"] in ("error", "critical")]
    target.events.clear()
    assert not bugs
    assert target.writer.info().max_physical_offset == 0


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw a request of a real client with other values, in either serialisation."""
    code, fields = draw(st.sampled_from(FIELDS))
    code = draw(st.just(code) | CODES)
    others = draw(st.dictionaries(st.sampled_from(NAMES), VALUES | TEXTS | HOSTILE_I4.map(str), max_size=4))
    given = {name: str(value) for name, value in {**fields, **others}.items()}
    body = draw(
        st.sampled_from([b"", b"x", *BODIES]) | JSON.map(orjson.dumps) | st.binary(max_size=40)
        | mutated(st.just(wire_batch((b"a", b"", 0), (b"b", b"TAGS\x01a\x02", 0))))
    )  # fmt: skip
    flag = draw(st.sampled_from([0, 0, 0, 2, 1, 3, -1]))
    if draw(st.booleans()):
        pairs = [(name.encode(), value.encode()) for name, value in given.items()]
        header = binary_header_bytes(
            max(-0x8000, min(code, 0x7FFF)), draw(st.integers(0, 255)), 317, 1, flag, b"", *pairs
        )
        return frame_bytes(header, body, serialization=1)
    header = orjson.dumps({"code": code, "opaque": 1, "flag": flag, "language": "GO", "extFields": given})
    return frame_bytes(header, body)


@fuzz(few=60, at_once=200, data=st.lists(FRAMES, min_size=1, max_size=3).map(b"".join), reads=st.booleans())
def test_the_remoting_port_survives_any_bytes(target: Target, data: bytes, reads: bool) -> None:
    """Random bytes, real frames after changes, and deep headers."""
    check(target, data, reads=reads)


@fuzz(few=120, at_once=200, sent=st.lists(requests(), min_size=1, max_size=8), reads=st.booleans())
def test_requests_of_any_values_are_answered(target: Target, sent: list[bytes], reads: bool) -> None:
    """Each code, with the fields and bodies of others: an answer or a refusal, never an internal error."""
    check(target, b"".join(sent), reads=reads)
