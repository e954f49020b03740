"""Step 2: typical queries over REST. Each answer is shown and compared with the table."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from demo.append import QUEUES
from demo.flights import KEY, TAG
from demo.screen import show_table
from tidemark.client import Query
from tidemark.client.answers import FoundMessage
from tidemark.client.producer.send_table import TableResult

CARRIER = "HA"  # Hawaiian: a flight a day
AIRCRAFT = "N14228"
_COLUMNS = ("queue", "offset", "scheduled", "flight", "from", "to", "aircraft")


def ask(query: Query, table: pa.Table, topic: str, sent: TableResult) -> list[str]:
    """Run all queries on *topic* and return the differences from the table, one line each."""
    return [
        *latest_of_carrier(query, table, topic, sent),
        *journey(query, table, topic),
        *after_time(query, topic, sent),
        *one_message(query, table, topic, sent),
    ]


def latest_of_carrier(query: Query, table: pa.Table, topic: str, sent: TableResult) -> list[str]:
    """Pull by tag from the first offset of each queue, and show the last five messages in log order."""
    found: list[FoundMessage] = []
    for queue_id in range(QUEUES):
        found += pull_all(query, topic, queue_id, tag=CARRIER)
    found.sort(key=lambda message: int(message["physical_offset"]))
    _show(f"Latest departures of {CARRIER} (pull by tag, {len(found)} found)", found[-5:])
    expected = int(pc.sum(pc.equal(table[TAG], CARRIER)).as_py())
    wrong = [message for message in found if message["tag"] != CARRIER]
    return _differences("pull by tag", len(found), expected, wrong)


def journey(query: Query, table: pa.Table, topic: str) -> list[str]:
    """Look up messages by key."""
    found: list[FoundMessage] = []
    cursor = None
    while True:
        page = query.by_key(topic, AIRCRAFT, limit=200, cursor=cursor, body_encoding="utf8")
        found += page["messages"]
        cursor = page.get("next_cursor")
        if not cursor:
            break
    found.sort(key=lambda message: int(message["physical_offset"]))
    _show(f"The journey of {AIRCRAFT} (lookup by key, {len(found)} flights)", found[:5])
    expected = int(pc.sum(pc.equal(table[KEY], AIRCRAFT)).as_py())
    wrong = [message for message in found if message["keys"] != [AIRCRAFT]]
    return _differences("lookup by key", len(found), expected, wrong)


def after_time(query: Query, topic: str, sent: TableResult) -> list[str]:
    """Find offsets by time: the first messages stored at or after a moment in the middle of the append."""
    time_ms = sorted(result.store_timestamp_ms for result in sent.results)[len(sent.results) // 2]
    differences = []
    shown: list[FoundMessage] = []
    for queue_id in range(QUEUES):
        offset = int(query.offset_at(topic, queue_id, time_ms)["offset"])
        page = query.pull(topic, queue_id, max(0, offset - 1), max_messages=2, body_encoding="utf8")["messages"]
        before = [message for message in page if message["queue_offset"] < offset]
        behind = [message for message in page if message["queue_offset"] >= offset]
        shown += [FoundMessage(queue_id=queue_id, **message) for message in behind]
        if any(m["store_timestamp_ms"] >= time_ms for m in before):
            differences.append(f"offset by time: queue {queue_id} has an earlier message at or after {time_ms}")
        if any(m["store_timestamp_ms"] < time_ms for m in behind):
            differences.append(f"offset by time: queue {queue_id} offset {offset} is before {time_ms}")
    _show(f"The first of each queue stored at or after {time_ms} ms (offset by time)", shown)
    return differences


def one_message(query: Query, table: pa.Table, topic: str, sent: TableResult) -> list[str]:
    """Look up one message by the id that the producer got for the last row."""
    row = table.num_rows - 1
    place = (int(sent.queue_ids[row]), int(sent.queue_offsets[row]))
    (result,) = (r for r in sent.results if r.queue_id == place[0] and 0 <= place[1] - r.queue_offset < r.count)
    message_id = result.offset_message_ids[place[1] - result.queue_offset]
    answer = query.message(message_id, body_encoding="utf8")
    (message,) = answer["messages"]
    _show(f"Message {message_id} (by id)", [{"queue_id": answer["queue_id"], **message}])
    if orjson.loads(message["body"]) != table.slice(row, 1).to_pylist()[0]:
        return [f"message by id: {message_id} is not row {row}"]
    return []


def pull_all(query: Query, topic: str, queue_id: int, *, tag: str | None = None) -> list[FoundMessage]:
    """Pull all messages of a queue, page by page, with bodies as text."""
    found: list[FoundMessage] = []
    next_offset, end = 0, 1
    while next_offset < end:
        page = query.pull(
            topic, queue_id, next_offset, tag=tag, max_messages=5000, max_bytes=16 << 20, body_encoding="utf8"
        )
        found += [{"queue_id": queue_id, **message} for message in page["messages"]]
        next_offset, end = page["next_offset"], page["max_offset"]
    return found


def _show(title: str, messages: Sequence[FoundMessage]) -> None:
    rows = []
    for message in messages:
        flight = orjson.loads(message["body"])
        number = f"{flight['carrier']}{flight['flight']}"
        hour, minute = divmod(flight["sched_dep_time"], 100)
        moment = f"{flight['month']:02}-{flight['day']:02} {hour:02}:{minute:02}"
        place = (message["queue_id"], message["queue_offset"])
        rows.append((*place, moment, number, flight["origin"], flight["dest"], flight["tailnum"] or "–"))
    show_table(title, _COLUMNS, rows)


def _differences(what: str, found: int, expected: int, wrong: Sequence[FoundMessage]) -> list[str]:
    differences = [f"{what}: {len(wrong)} messages that do not match the query"] if wrong else []
    if found != expected:
        differences.append(f"{what}: {found} found, {expected} in the table")
    return differences
