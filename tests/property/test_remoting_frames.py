"""Frames of the remoting protocol: decode(encode(x)) is x, and a stream can be cut anywhere."""

from __future__ import annotations

import dataclasses
import json

from hypothesis import given
from hypothesis import strategies as st

from tests.property.strategies import I4, I8
from tests.unit.remoting.frames import binary_header_bytes, frame_bytes
from tidemark.remoting import Frame, Language, Serialization, decode, encode, encode_parts, split
from tidemark.remoting.pulling import PULL_ANSWER, PULL_REQUEST, PullMessageAnswer, PullMessageRequest
from tidemark.remoting.sending import SendRequest, parse_send, to_fields

I2 = st.integers(-(1 << 15), (1 << 15) - 1)
TEXT = st.text(max_size=20)  # without surrogates, which UTF-8 cannot encode
FIELDS = st.dictionaries(TEXT, TEXT, max_size=5)
BODY = st.binary(max_size=40)
LANGUAGE = st.sampled_from(Language)
FRAMES = st.builds(
    Frame, code=I4, flag=I4, opaque=I4, language=LANGUAGE, version=I4, remark=TEXT, fields=FIELDS, body=BODY
)
BINARY_FRAMES = st.builds(
    Frame,
    code=I2,
    flag=I4,
    opaque=I4,
    language=LANGUAGE,
    version=I2,
    remark=TEXT,
    fields=FIELDS,
    body=BODY,
    serialization=st.just(Serialization.ROCKETMQ),
)
ANY_FRAMES = FRAMES | BINARY_FRAMES
SENDS = st.builds(
    SendRequest,
    producer_group=TEXT,
    topic=TEXT,
    queue_id=I4,
    sys_flag=I4,
    born_timestamp=I8,
    flag=I4,
    default_topic=TEXT,
    default_topic_queue_nums=I4,
    properties=TEXT,
    reconsume_times=I4,
    unit_mode=st.booleans(),
    max_reconsume_times=st.none() | I4,
    batch=st.booleans(),
    broker_name=st.none() | TEXT,
)
PULLS = st.builds(
    PullMessageRequest,
    consumer_group=TEXT,
    topic=TEXT,
    queue_id=I4,
    queue_offset=I8,
    max_msg_nums=I4,
    sys_flag=I4,
    commit_offset=I8,
    suspend_timeout_ms=I8,
    subscription=st.none() | TEXT,
    sub_version=I8,
    expression_type=TEXT,
    max_msg_bytes=st.none() | I4,
)


@given(frame=ANY_FRAMES)
def test_frame_returns_from_its_bytes(frame: Frame) -> None:
    wire = encode(frame)
    assert decode(wire) == decode(memoryview(wire)) == frame
    assert b"".join(encode_parts(frame, [frame.body])) == wire


@given(frame=BINARY_FRAMES)
def test_both_forms_of_a_header_have_the_same_values(frame: Frame) -> None:
    """A frame in JSON by the standard library, and in binary by struct, is decoded to the same values."""
    header = {
        "code": frame.code,
        "flag": frame.flag,
        "opaque": frame.opaque,
        "language": frame.language.name,
        "version": frame.version,
        "remark": frame.remark,
        "extFields": frame.fields,
    }
    pairs = [(name.encode(), value.encode()) for name, value in frame.fields.items()]
    binary = binary_header_bytes(
        frame.code, frame.language, frame.version, frame.opaque, frame.flag, frame.remark.encode(), *pairs
    )
    assert decode(frame_bytes(binary, bytes(frame.body), 1)) == frame
    in_json = dataclasses.replace(frame, serialization=Serialization.JSON)
    assert decode(frame_bytes(json.dumps(header).encode(), bytes(frame.body))) == in_json


@given(frames=st.lists(ANY_FRAMES, max_size=4), data=st.data())
def test_stream_cut_anywhere_has_the_frames_that_are_whole(frames: list[Frame], data: st.DataObject) -> None:
    wires = list(map(encode, frames))
    stream = b"".join(wires)
    cut = data.draw(st.integers(0, len(stream)))
    first, used = split(memoryview(stream)[:cut])
    second, rest = split(memoryview(stream)[used:])
    places = [*first, *((used + start, used + end) for start, end in second)]
    assert [stream[start:end] for start, end in places] == wires
    assert used + rest == len(stream)
    assert len(first) == sum(len(b"".join(wires[: number + 1])) <= cut for number in range(len(wires)))


@given(send=SENDS, code=st.sampled_from([10, 310, 320]))
def test_send_returns_from_its_fields(send: SendRequest, code: int) -> None:
    assert parse_send(code, to_fields(code, send)) == send


@given(pull=PULLS, answer=st.builds(PullMessageAnswer, I8, I8, I8, I8, I4, I4))
def test_pull_and_its_answer_return_from_their_fields(pull: PullMessageRequest, answer: PullMessageAnswer) -> None:
    assert PULL_REQUEST.read(PULL_REQUEST.write(pull)) == pull
    assert PULL_ANSWER.read(PULL_ANSWER.write(answer)) == answer
