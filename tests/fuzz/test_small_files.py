"""The small files of a store: arbitrary content is valid, or refused by name."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import strategies as st

from services.indexer.query.groups.member_table import MemberTable
from services.indexer.query.groups.saved_members import take_members
from tests.fuzz.mutation import mutated
from tests.fuzz.target import fuzz
from tests.property.strategies import I8
from tidemark.archive.manifest import load_manifest as load_archive
from tidemark.backup.manifest import load_manifest as load_backup
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.store.batch_journal import read_journal
from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.flushed import read_floor_of_async, read_flushed_offset
from tidemark.store.marks import Marks
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.delay_offsets import load_delay_offsets
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.originals.next_offsets import load_next_offsets
from tidemark.store.originals.terms import machine_boot_id, read_terms
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.store.originals.topics import load_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

BOOT = machine_boot_id()
TOKEN = bytes(range(16))


class SmallFile(NamedTuple):
    """One kind of file. right: content as its owner writes it, to begin with."""

    name: str
    right: bytes
    read: Callable[[StorePaths], object]


def _marks(paths: StorePaths) -> object:
    marks = Marks.open_read_only(paths.marks)
    read = (marks.watermark(), marks.durable_floor(), marks.greatest_durable(), marks.term, marks.index_file)
    marks.close()
    return read


def _checkpoint(paths: StorePaths) -> object:
    checkpoint = Checkpoint.open_read_only(paths.checkpoint)
    read = [checkpoint.get(field) for field in Field]
    checkpoint.close()
    return read


def _members(paths: StorePaths) -> object:
    # like the query service, which reports it in a warning
    with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
        MemberTable("store", max_groups=9, max_members=9).take_over(take_members(paths, DiskStorage()))
    return None


def _flushed(paths: StorePaths) -> object:
    return read_flushed_offset(paths.flushed), read_floor_of_async(paths.flushed)


def _journal(paths: StorePaths) -> object:
    return read_journal(paths.writer / "batches", paths.abort)


def _ledger(paths: StorePaths) -> object:
    return [(entry["physical_offset"], entry["size"], entry["reason"]) for entry in read_ledger(paths.indexer)]


OFFSETS = b'{"offsetTable":{"orders@billing":{0:25,1:7},"%RETRY%g@g":{0:3}},"dataVersion":{"counter":4}}'
ENTRY = (
    b'{"physical_offset":7,"size":91,"reason":"MAGIC","topic":null,"queue_id":null,"queue_offset":null,"found_ms":1}\n'
)
TOPIC = b'{"topicName":"t","readQueueNums":2,"writeQueueNums":2,"perm":6,"attributes":{"queue.type":"BatchCQ"}}'
MEMBER = {"member_id": "m", "topics": ["t"], "session_timeout_ms": 10_000, "holds": [["t", 0]]}
GROUP = {"g": {"generation": 5, "strategy": "averagely", "members": [MEMBER]}}
BACKUP = {
    "version": 1,
    "store_name": "s",
    "term": 1,
    "start": 0,
    "end": 9,
    "log_file_size": 4096,
    "taken_ms": 1,
    "files": [{"path": "commitlog/0", "stored": "log/0", "size": 9, "sha256": "00", "sealed": True}],
}
WORDS = b"".join(
    n.to_bytes(8, sys.byteorder) for n in (int.from_bytes(b"TIDEMRK1", sys.byteorder), 1, 5, 0, 0, 0, 0, 1)
)
TOPICS = b'{"topicConfigTable":{"t":' + TOPIC + b"}}"
DELAYS = b'{"offsetTable":{1:25},"dataVersion":{"counter":4}}'
TOMBSTONES = b'{"tombstones":[{"topic":"t","physicalOffset":9,"nextOffsets":{"0":5}}]}'
NEXT = b'{"version":1,"position":9,"storeTimestamp":5,"offsetTable":{"t":{"0":7}}}'
FORMAT = b'{"version":{"major":1,"minor":0},"written_by":"x"}'
MEMBERS = orjson.dumps({"version": 1, "boot_id": BOOT, "groups": GROUP})
FILES = (
    SmallFile("config/topics.json", TOPICS, lambda paths: load_topics(paths.topics)),
    SmallFile("config/consumerOffset.json", OFFSETS, lambda paths: load_consumer_offsets(paths.consumer_offsets)),
    SmallFile("config/delayOffset.json", DELAYS, lambda paths: load_delay_offsets(paths.delay_offsets)),
    SmallFile("tidemark/writer/tombstones.json", TOMBSTONES, lambda paths: load_tombstones(paths.tombstones)),
    SmallFile("tidemark/writer/queue_offsets", NEXT, lambda paths: load_next_offsets(paths.next_offsets)),
    SmallFile("tidemark/writer/terms", b"1 0 boot\n2 4096 boot\n", lambda paths: read_terms(paths.terms)),
    SmallFile("tidemark/writer/flushed", b"1SLFEDIT".ljust(4096, b"\0"), _flushed),
    SmallFile("tidemark/writer/batches", TOKEN.ljust(96, b"\0"), _journal),
    SmallFile("abort", b"1 " + TOKEN.hex().encode(), _journal),
    SmallFile("tidemark/format", FORMAT, require_known_format),
    SmallFile("tidemark/indexer/ledger-0.jsonl", 2 * ENTRY, _ledger),
    SmallFile("tidemark/indexer/marks", WORDS.ljust(4096, b"\0"), _marks),
    SmallFile("tidemark/query/members.json", MEMBERS, _members),
    SmallFile("checkpoint", bytes(4096), _checkpoint),
    SmallFile("manifest.json", orjson.dumps(BACKUP), lambda paths: (load_backup(paths.root), load_archive(paths.root))),
)
NAMES = st.sampled_from(["0", "t", "topic"]) | st.text(max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | I8 | st.integers(0, 1 << 70) | st.floats(width=64) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def with_another_value(draw: st.DrawFn, right: bytes) -> bytes:
    """Draw the JSON document with another value at one place, or, if it is no JSON, changed bytes."""
    try:
        document = orjson.loads(right)
    except orjson.JSONDecodeError:
        return draw(mutated(st.just(right)))
    holder: Any = {"": document}
    place: Any = ""
    while isinstance(holder[place], dict | list) and holder[place] and draw(st.integers(0, 3)):
        holder = holder[place]
        place = draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
    whole = holder is not document and place == ""
    value = draw(JSON)
    if whole:
        return to_json(value)
    holder[place] = value
    return to_json(document)


def to_json(value: Any) -> bytes:
    """Encode *value*, including numbers that orjson does not write."""
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> StorePaths:
    return StorePaths(tmp_path_factory.mktemp("small"))


@fuzz(few=250, at_once=1_000, file=st.sampled_from(FILES), data=st.data())
def test_a_fuzzed_small_file_is_loaded_or_raises_a_store_error(
    paths: StorePaths, file: SmallFile, data: st.DataObject
) -> None:
    """It raises a StoreError, or reports that there is no such file."""
    right = st.just(file.right)
    nested = st.integers(1, 50_000).map(lambda depth: b'{"offsetTable":' * (depth > 1_000) + b"[" * depth)
    content = data.draw(
        mutated(right) | with_another_value(file.right) | nested | st.binary(max_size=64), label=file.name
    )
    path = paths.root / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    try:
        with contextlib.suppress(StoreError, FileNotFoundError):
            file.read(paths)
    finally:
        path.unlink(missing_ok=True)
