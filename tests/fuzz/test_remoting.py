"""Hostile bytes at a remoting connection: each is a frame or a FrameIllegalError, each field a value or an error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import orjson
from hypothesis import strategies as st

from tests.conformance.remoting.traces import exchanges
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.property.strategies import HOSTILE_I4, NUMBERS, TEXTS
from tests.property.test_remoting_frames import ANY_FRAMES
from tests.unit.remoting.frames import frame_bytes
from tidemark.errors import FieldIllegalError, FrameIllegalError
from tidemark.remoting import (
    Frame,
    answer_to,
    decode,
    encode,
    groups,
    heartbeats,
    offset_answers,
    offsets,
    pulling,
    routes,
    send_back,
    sending,
    split,
)
from tidemark.remoting.field_table import FieldTable
from tidemark.remoting.frame import Buffer
from tidemark.remoting.signature import is_signed

CAPTURED = list(exchanges())
HEADERS = [frame_bytes(orjson.dumps(one.request), one.body or b"") for one in CAPTURED]
FIELDS = [one.fields for one in CAPTURED] + [one.answer_fields for one in CAPTURED]
BODIES = [body for one in CAPTURED for body in (one.body, one.answer_body) if body]
NAMES = sorted({name for fields in FIELDS for name in fields})
VALUES = NUMBERS | TEXTS | st.sampled_from(["", "true", "LOWER", "||", "9" * 5_000]) | HOSTILE_I4.map(str)
TABLES: list[FieldTable[Any]] = [
    table
    for module in (sending, pulling, offsets, offset_answers, send_back, groups, routes)
    for table in vars(module).values()
    if isinstance(table, FieldTable)
]
PARSERS: list[Callable[[Buffer], object]] = [
    heartbeats.parse_heartbeat,
    heartbeats.parse_client_config,
    groups.parse_consumer_list,
    groups.parse_queue_lock,
    groups.parse_locked_queues,
    routes.parse_route,
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats(width=64) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = st.sampled_from(["code", "flag", "opaque", "language", "version", "remark", "extFields"])


@st.composite
def with_another_member(draw: st.DrawFn) -> bytes:
    """Draw a frame with another value of a header's member, or of a field."""
    header = orjson.loads(orjson.dumps(draw(st.sampled_from(CAPTURED)).request))
    if draw(st.booleans()):
        header[draw(MEMBERS)] = draw(JSON)
    else:
        header["extFields"] = {**header.get("extFields", {}), draw(st.sampled_from(NAMES)): draw(JSON)}
    return frame_bytes(orjson.dumps(header))


def nested(levels: int, text: bytes) -> bytes:
    """Return a frame whose header is nested *levels* deep."""
    deep = b"[" * levels + b"]" * levels
    return frame_bytes(b'{"code":1,"opaque":1,"extFields":{"a":' + text + b'},"deep":' + deep + b"}")


DEEP = st.builds(nested, st.integers(400, 3_000), st.sampled_from([b'"x"', b"1", b"[]"]))
FRAMES = mutated(st.sampled_from(HEADERS) | ANY_FRAMES.map(encode)) | with_another_member() | DEEP | st.binary()


def decoded(stream: bytes) -> list[Frame]:
    """Return the frames of *stream* before its first illegal start, without those whose header is illegal."""
    try:
        places, used = split(stream)
    except FrameIllegalError as error:
        end = int(str(error.facts["at"]))
        places, used = split(stream[:end])
    assert used == (places[-1][1] if places else 0)
    frames = []
    for start, end in places:
        with contextlib.suppress(FrameIllegalError):
            frames.append(decode(memoryview(stream)[start:end]))
    return frames


@fuzz(few=200, at_once=2_000, stream=st.lists(FRAMES, max_size=3).map(b"".join))
def test_stream_is_frames_or_an_illegal_frame(stream: bytes) -> None:
    """A frame that was decoded can be encoded again, answered and shown, and its fields can be read."""
    for frame in decoded(stream):
        assert decode(encode(frame)) == frame
        assert repr(frame)
        if not frame.is_one_way:
            assert decode(encode(answer_to(frame, 1, frame.remark, frame.fields))).opaque == frame.opaque
        for table in TABLES:
            with contextlib.suppress(FieldIllegalError):
                table.read(frame.fields)
        is_signed("secret", frame.fields, frame.body)


@fuzz(few=200, at_once=2_000, frame=FRAMES)
def test_decode_of_any_bytes_is_a_frame_or_an_illegal_frame(frame: bytes) -> None:
    with contextlib.suppress(FrameIllegalError):
        decode(frame)


@fuzz(
    few=200,
    at_once=2_000,
    fields=st.sampled_from(FIELDS),
    others=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4),
    without=st.sets(st.sampled_from(NAMES), max_size=2),
)
def test_fields_are_a_value_or_an_illegal_field(
    fields: dict[str, str], others: dict[str, str], without: set[str]
) -> None:
    """A value that was read returns from the fields that are written for it."""
    given = {name: value for name, value in {**fields, **others}.items() if name not in without}
    for table in TABLES:
        with contextlib.suppress(FieldIllegalError):
            value = table.read(given)
            assert table.read(table.write(value)) == value


@fuzz(few=200, at_once=2_000, expression=VALUES | st.text())
def test_tag_expression_is_tags_or_an_illegal_field(expression: str) -> None:
    with contextlib.suppress(FieldIllegalError):
        pulling.tag_hashes(expression)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Draw a JSON body with another value at one place."""
    document = orjson.loads(draw(st.sampled_from(BODIES).filter(lambda body: b"{0:" not in body)))
    holder: Any = {"": document}
    place: Any = ""
    while isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 3)):
        holder = holder[place]
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    holder[place] = draw(JSON)
    return orjson.dumps(document)


DEEP_BODIES = st.builds(
    lambda name, levels, end: b'{"%s":' % name.encode() + b"[" * levels + b"]" * (levels if end else 0) + b"}",
    st.sampled_from(
        ["clientID", "consumerDataSet", "clientId", "mqSet", "lockOKMQSet", "consumerIdList", "brokerDatas"]
    ),
    st.integers(1, 50_000) | st.integers(1, 1_100),
    st.booleans(),
)


@fuzz(few=200, at_once=2_000, body=bodies() | mutated(st.sampled_from(BODIES)) | DEEP_BODIES | st.binary(max_size=64))
def test_body_is_a_value_or_an_illegal_field(body: bytes) -> None:
    for parse in PARSERS:
        with contextlib.suppress(FieldIllegalError):
            parse(body)
