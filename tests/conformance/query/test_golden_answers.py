"""A real broker's recorded answers to a real client, compared line by line with REST and semantics=rocketmq.

The stores are those of the golden archives: with the broker's queue files and index (only the marks, which a broker
does
not know, are written here), attached to, where nothing is written, and without them, rebuilt by the pipeline from the
log. docs/format.md §14 translates RocketMQ's terms for a client.
"""

from __future__ import annotations

import json
import lzma
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bodies import body_of
from tests.builders import MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from tests.conftest import GOLDEN
from tests.integration.attach.attached import attach, look_at
from tests.pipeline_runs import GOLDEN_SETTINGS, build, plan_of, without_derived
from tests.query_server import serve_query
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

STORES = {"mixed": "mixed/store", "killed": "killed/store-recovered", "expired": "expired/store"}
PULL_BATCH = 32  # the golden client's batch size when it read whole queues
CLIENT_STATUS = {  # docs/format.md §14
    "FOUND": "FOUND",
    "NO_MATCHED_MESSAGE": "NO_MATCHED_MSG",
    "MESSAGE_WAS_REMOVING": "NO_MATCHED_MSG",
    "OFFSET_OVERFLOW_ONE": "NO_NEW_MSG",
    "OFFSET_FOUND_NULL": "NO_NEW_MSG",
}
Line = dict[str, Any]


def end_of_log(folder: Path) -> int:
    """Return the last record's end: a plain walk over sizes and magic."""
    end = 0
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at + 8 <= len(data):
            size, magic = struct.unpack_from(">ii", data, at)
            if magic not in (MAGIC_V1, MAGIC_V2):
                break
            at += size
            end = int(path.name) + at
        if at + 8 > len(data) or struct.unpack_from(">ii", data, at)[1] != MAGIC_BLANK:
            break
    return end


def publish(root: Path) -> None:
    """Write marks for a completely indexed log."""
    marks = Marks.open_to_write(root / "tidemark" / "indexer" / "marks", DiskStorage(), shards=1, term=0)
    marks.publish(0, end_of_log(root / "commitlog"))
    marks.close()


@pytest.fixture(scope="module", params=sorted(STORES))
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["the broker's queues", "attached", "rebuilt queues"])
def client(
    request: pytest.FixtureRequest,
    store: str,
    golden_store: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[httpx.Client]:
    root = tmp_path_factory.mktemp("query") / store
    if request.param == "attached":
        before = look_at(golden_store(STORES[store]))
        with attach(golden_store(STORES[store]), root) as attached:
            attached.wait_for_watermark(end_of_log(golden_store(STORES[store]) / "commitlog"))
            yield attached.client
        assert look_at(golden_store(STORES[store])) == before
        return
    if request.param == "rebuilt queues":
        without_derived(golden_store(STORES[store]), root)
        build(plan_of(root, **GOLDEN_SETTINGS[STORES[store]]))
    else:
        shutil.copytree(golden_store(STORES[store]), root)
        publish(root)
    with serve_query(root) as client:
        yield client


@pytest.fixture(scope="module")
def lines(store: str) -> dict[str, list[Line]]:
    """Return the expected answers by kind."""
    by_kind: dict[str, list[Line]] = {}
    with lzma.open(GOLDEN / store / "expected.jsonl.xz", "rt", encoding="utf-8") as file:
        for text in file:
            line = json.loads(text)
            by_kind.setdefault(line["kind"], []).append(line)
    return by_kind


def pull(client: httpx.Client, topic: str, queue_id: int, **arguments: Any) -> Line:
    response = client.get(
        f"/v1/topics/{topic}/queues/{queue_id}/messages",
        params={"semantics": "rocketmq", "max_bytes": 64 << 20, **arguments},
    )
    assert response.status_code == 200, response.text
    answer: Line = response.json()
    assert answer["skipped"] == []
    return answer


def test_queue_bounds_equal_those_of_the_broker(client: httpx.Client, lines: dict[str, list[Line]]) -> None:
    """Minimum and maximum offset of each queue are compared."""
    for line in lines["queue"]:
        answer = client.get(f"/v1/topics/{line['topic']}/queues/{line['queue_id']}").json()
        assert {**line, "min_offset": answer["min_offset"], "max_offset": answer["max_offset"]} == line


def test_pulls_equal_those_of_the_broker(client: httpx.Client, lines: dict[str, list[Line]]) -> None:
    """Status, next offset and messages are compared, with and without tags, also within inner batches."""
    for line in lines["pull"]:
        answer = pull(
            client,
            line["topic"],
            line["queue_id"],
            offset=line["offset"],
            max_messages=line["max_messages"],
            tag=line["tags"],
        )
        told = {
            "status": CLIENT_STATUS[answer["status"]],
            "next_offset": answer["next_offset"],
            "queue_offsets": [message["queue_offset"] for message in answer["messages"]],
        }
        assert {**line, **told} == line


def test_offsets_by_time_equal_those_of_the_broker(client: httpx.Client, lines: dict[str, list[Line]]) -> None:
    """The lower boundary is compared at, between and beyond store times."""
    for line in lines["offset_by_time"]:
        answer = client.get(
            f"/v1/topics/{line['topic']}/queues/{line['queue_id']}/offset",
            params={"time": line["timestamp_ms"], "semantics": "rocketmq"},
        ).json()
        assert {**line, "offset": answer["offset"]} == line


@pytest.mark.parametrize("semantics", ["rocketmq", "tidemark"])
def test_key_lookups_equal_those_of_the_broker(
    client: httpx.Client, lines: dict[str, list[Line]], semantics: str
) -> None:
    """By Tidemark's own semantics a key finds at least these: a broker's client stops after 64 hashes."""
    for line in lines["key"]:
        answer = client.get(
            f"/v1/topics/{line['topic']}/messages",
            params={"key": line["key"], "limit": 1000, "semantics": semantics},
        ).json()
        places = sorted({message["physical_offset"] for message in answer["messages"]})
        if semantics == "rocketmq" or len(line["physical_offsets"]) < 32:
            assert {**line, "physical_offsets": places} == line
        else:
            assert set(line["physical_offsets"]) <= set(places)


def test_every_looked_up_message_equals_that_of_the_broker(client: httpx.Client, lines: dict[str, list[Line]]) -> None:
    """Every field of every message of every queue is compared, as a client that pulls 32 at a time has it."""
    queues: dict[tuple[str, int], list[Line]] = {}
    for line in lines["queue"]:
        queues[line["topic"], line["queue_id"]] = []
    for line in lines["message"]:
        queues[line["topic"], line["queue_id"]].append(line)
    for (topic, queue_id), expected in queues.items():
        told = list(whole_queue(client, topic, queue_id))
        assert len(told) == len(expected)
        for mine, theirs in zip(told, expected, strict=True):
            assert mine == theirs


def whole_queue(client: httpx.Client, topic: str, queue_id: int) -> Iterator[Line]:
    """Yield all messages of a queue in the form of the expected file."""
    offset: int | str = "earliest"
    while True:
        answer = pull(client, topic, queue_id, offset=offset, max_messages=PULL_BATCH)
        if answer["status"] in ("OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"):
            return
        for message in answer["messages"]:
            yield as_client(message, answer)
        assert answer["next_offset"] > answer["requested_offset"]
        offset = answer["next_offset"]


def as_client(message: Line, answer: Line) -> Line:
    """Return one message of a pull as the golden client recorded it: it adds the queue's bounds to the properties."""
    body = body_of(message)
    bounds = {"MIN_OFFSET": str(answer["min_offset"]), "MAX_OFFSET": str(answer["max_offset"])}
    return {
        "kind": "message",
        "topic": answer["topic"],
        "queue_id": answer["queue_id"],
        "queue_offset": message["queue_offset"],
        "physical_offset": message["physical_offset"],
        "store_size": message["store_size"],
        "msg_id": message["message_id"],
        "sys_flag": message["sys_flag"],
        "flag": message["flag"],
        "body_crc": message["body_crc"],
        "born_timestamp": message["born_timestamp_ms"],
        "store_timestamp": message["store_timestamp_ms"],
        "born_host": f"/{message['born_host']}",
        "store_host": f"/{message['store_host']}",
        "reconsume_times": message["reconsume_times"],
        "prepared_transaction_offset": message["prepared_transaction_offset"],
        "properties": {**message["properties"], **bounds},
        "body_size": len(body),
        "body_crc32_uncompressed": zlib.crc32(body) & 0x7FFFFFFF,
    }
