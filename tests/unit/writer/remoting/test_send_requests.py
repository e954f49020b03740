"""SendRequests over real connections and an opened log in real files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.writer.remoting.send_requests import SendRequests
from tests.builders import STORE_HOST, properties, wire_batch
from tests.unit.remoting_server.served import Client, serving
from tests.unit.writer.opened_log import LONG_S, SyncGate
from tests.unit.writer.submission.submitting import Submitting, submitting_at
from tests.waiting import until_async
from tidemark.format.message_id import decode_offset_message_id
from tidemark.remoting import Frame
from tidemark.remoting.sending import SendRequest, parse_send_answer, to_fields

ASKED = SendRequest("producers", "orders", 0, 0, 1_000, 0, properties="UNIQ_KEY\x01k\x02")
TWO = wire_batch((b"a", properties({"UNIQ_KEY": "1"}), 0), (b"b", properties({"UNIQ_KEY": "2"}), 0))


class Sending:
    """A submitter, and a client of its remoting interface."""

    def __init__(self, parts: Submitting, client: Client) -> None:
        self.parts = parts
        self.client = client

    async def send(self, asked: SendRequest = ASKED, body: bytes = b"x", code: int = 310) -> Frame:
        return await self.client.call(code, to_fields(code, asked), body)


@asynccontextmanager
async def sending_at(root: Path, disk: SyncGate | None, tries: int, **given: Any) -> AsyncIterator[Sending]:
    async with submitting_at(root, disk, **given) as parts:
        requests = SendRequests(parts.submitter, STORE_HOST, tries)
        async with serving(requests.handlers(), in_flight=1_000) as served:
            yield Sending(parts, await served.client())


def run(
    test: Callable[[Sending], Coroutine[Any, Any, None]],
    root: Path,
    disk: SyncGate | None = None,
    tries: int = 16,
    **given: Any,
) -> None:
    """Run *test* with a store at *root*. tries: the setting max_reconsume_times."""

    async def main() -> None:
        async with sending_at(root, disk, tries, **given) as sending:
            await asyncio.wait_for(test(sending), LONG_S)

    asyncio.run(main())


def test_the_ids_of_a_batch_are_its_places_at_the_stores_address(tmp_path: Path) -> None:
    async def test(sending: Sending) -> None:
        answer = await sending.send(ASKED._replace(batch=True), TWO)
        found = parse_send_answer(answer.fields)
        places = [decode_offset_message_id(text) for text in found.message_ids]
        assert [str(place.store_host) for place in places] == ["192.168.7.65:10911"] * 2
        assert places[0].physical_offset == 0 < places[1].physical_offset
        assert (found.transaction_id, found.trace_on) == ("1", False)

    run(test, tmp_path)


def test_a_message_with_many_others_before_it_is_answered_when_it_is_stored(tmp_path: Path) -> None:
    """One flush is for all of them, and no task is created for one whose topic exists."""
    disk = SyncGate()

    async def test(sending: Sending) -> None:
        await sending.send()
        disk.is_open.clear()
        fields = to_fields(310, ASKED._replace(properties=""))
        sent = [await sending.client.send(310, fields, b"%d" % number) for number in range(100)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sending.client.receive(), 0.1)
        disk.is_open.set()
        answers = [await sending.client.receive() for _ in sent]
        assert [answer.opaque for answer in answers] == sent
        assert [answer.fields["queueOffset"] for answer in answers] == [str(number) for number in range(1, 101)]

    run(test, tmp_path, disk)


@pytest.mark.parametrize(
    ("tries", "reconsume_times", "limit", "topic"),
    [
        (16, 16, None, "%RETRY%g"),
        (16, 17, None, "%DLQ%g"),
        (2, 3, None, "%DLQ%g"),
        (2, 3, 5, "%RETRY%g"),
        (2, 6, 5, "%DLQ%g"),
        (16, 0x7FFFFFFF, 0x7FFFFFFF, "%RETRY%g"),
    ],
)
def test_the_limit_of_tries_is_that_of_the_request_or_the_setting(
    tmp_path: Path, tries: int, reconsume_times: int, limit: int | None, topic: str
) -> None:
    async def test(sending: Sending) -> None:
        asked = ASKED._replace(topic="%RETRY%g", reconsume_times=reconsume_times, max_reconsume_times=limit)
        assert (await sending.send(asked)).code == 0
        assert [name for name in ("%RETRY%g", "%DLQ%g") if sending.parts.topics.get(name)] == [topic]

    run(test, tmp_path, tries=tries)


def test_a_failed_append_is_answered_as_an_error(tmp_path: Path) -> None:
    disk = SyncGate()

    async def test(sending: Sending) -> None:
        await sending.send()
        disk.fails = True
        answer = await sending.send(ASKED._replace(properties=""))
        assert (answer.code, answer.fields["tidemarkReason"]) == (1, "FLUSH_FAILED")
        assert "queueOffset" not in answer.fields

    run(test, tmp_path, disk)


def test_an_answer_after_the_connection_has_closed_is_dropped(tmp_path: Path) -> None:
    """The message is stored."""
    disk = SyncGate()

    async def test(sending: Sending) -> None:
        await sending.send()
        written = sending.parts.opened.log.written_offset
        disk.is_open.clear()
        await sending.client.send(310, to_fields(310, ASKED._replace(properties="")), b"x")
        await until_async(lambda: sending.parts.opened.log.written_offset > written)
        sending.client.writer.transport.abort()
        await asyncio.sleep(0.05)
        disk.is_open.set()
        await until_async(lambda: sending.parts.opened.log.flushed_offset > written)

    run(test, tmp_path, disk)


@pytest.mark.parametrize("size", [32_700, 32_767, 40_000])
def test_properties_that_are_too_long_with_their_key_are_refused(tmp_path: Path, size: int) -> None:
    async def test(sending: Sending) -> None:
        answer = await sending.send(ASKED._replace(properties="a\x01" + "x" * (size - 3) + "\x02"))
        expected = 0 if size + 42 <= 32_767 else 13
        assert answer.code == expected, answer.remark

    run(test, tmp_path)
