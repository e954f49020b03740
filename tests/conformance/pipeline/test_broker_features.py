"""Stores of a real broker with features that are off by default, or with rare data; see data/MakeStore.java.

`light`: light queues, two folders of the log, V2 magic, IPv6 hosts, CRCs of whole records. `headless`: the same without
its first log file, so that queues begin with pre-blank units. `extension`: consume queue extension, a compacted topic.
"""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builders import wire_batch, write_log
from tests.conftest import GOLDEN
from tests.integration.writer.harness import RunningWriter
from tests.pipeline_runs import build, plan_of, queue_files, without_derived
from tests.query_server import serve_query
from tidemark.index.build import ConsumeQueueBuilder
from tidemark.index.ledger import read_ledger
from tidemark.read.store_reader import StoreReader
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

GoldenStore = Callable[[str], Path]
SIZES: dict[str, Any] = {
    "consume_queue_file_size_bytes": 400,
    "batch_consume_queue_file_size_bytes": 920,
    "index_slots": 100,
    "index_entries": 400,
}
TWO_FOLDERS: dict[str, Any] = {"commit_log_paths": "log-b,log-a", "enable_multi_dispatch": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "light": SIZES | TWO_FOLDERS,
    "headless": SIZES | TWO_FOLDERS,
    "extension": SIZES,
}


def expected(name: str) -> list[dict[str, Any]]:
    """Return the results of the broker's getMessage."""
    with lzma.open(GOLDEN / name / "expected.jsonl.xz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", ["light", "headless"])
def test_rebuilt_queue_files_equal_those_of_the_broker(
    golden_store: GoldenStore, tmp_path: Path, name: str, shards: int
) -> None:
    """This includes light queues and pre-blank heads, whichever shard owns record and light queue."""
    root = without_derived(golden_store(f"{name}/store"), tmp_path / "store")
    plan = plan_of(root, shards=shards, **SETTINGS[name])
    build(plan)
    assert queue_files(root) == queue_files(golden_store(f"{name}/store"))
    assert any("%LMQ%456" in path for path in queue_files(root))
    assert read_ledger(plan.paths.indexer) == []


@pytest.mark.parametrize("name", ["light", "headless"])
def test_building_over_the_files_of_the_broker_changes_no_byte(
    golden_store: GoldenStore, tmp_path: Path, name: str
) -> None:
    """An adopted store keeps its queues unchanged."""
    root = Path(shutil.copytree(golden_store(f"{name}/store"), tmp_path / "store"))
    build(plan_of(root, **SETTINGS[name]))
    assert queue_files(root) == queue_files(golden_store(f"{name}/store"))


def test_light_queues_are_built_only_with_multi_dispatch(golden_store: GoldenStore, tmp_path: Path) -> None:
    """By default such a record is like any other: every other queue equals the broker's."""
    root = without_derived(golden_store("light/store"), tmp_path / "store")
    build(plan_of(root, **SETTINGS["light"] | {"enable_multi_dispatch": False}))
    theirs = queue_files(golden_store("light/store"))
    assert queue_files(root) == {path: data for path, data in theirs.items() if "%LMQ%" not in path}


def ext_files(root: Path) -> dict[str, bytes]:
    """Return every file of an extension by its path."""
    paths = sorted(path for path in (root / "consumequeue_ext").rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("chunk_size_bytes", [4096, 8 << 20])
def test_a_rebuilt_extension_equals_that_of_the_broker(
    golden_store: GoldenStore, tmp_path: Path, chunk_size_bytes: int
) -> None:
    """Units of the extension, and their addresses in queue units, are equal; a second build changes no byte."""
    theirs = golden_store("extension/store")
    root = without_derived(theirs, tmp_path / "store")
    shutil.rmtree(root / "consumequeue_ext")
    wanted = SIZES | {"enable_consume_queue_ext": True, "consume_queue_ext_file_size_bytes": 840}
    build(plan_of(root, chunk_size_bytes=chunk_size_bytes, **wanted))
    assert (queue_files(root), ext_files(root)) == (queue_files(theirs), ext_files(theirs))
    shutil.rmtree(root / "tidemark")
    build(plan_of(root, chunk_size_bytes=chunk_size_bytes, **wanted))
    assert (queue_files(root), ext_files(root)) == (queue_files(theirs), ext_files(theirs))


def test_an_extension_is_not_changed_by_default(golden_store: GoldenStore, tmp_path: Path) -> None:
    """By default units get plain codes, which every reader supports."""
    theirs = golden_store("extension/store")
    root = Path(shutil.copytree(theirs, tmp_path / "store"))
    build(plan_of(root, **SIZES))
    assert ext_files(root) == ext_files(theirs)
    codes = {
        data[at + 12 : at + 16]
        for path, data in queue_files(root).items()
        for at in range(0, len(data), 20)
        if path.startswith("consumequeue/") and any(data[at : at + 20])
    }
    assert codes <= {bytes(4), b"\xff" * 4}


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_the_writer_continues_at_the_brokers_end(golden_store: GoldenStore, tmp_path: Path, name: str) -> None:
    """It recovers over V2 magic, IPv6 hosts and CRCs; numbering continues, and no byte below the old end changes."""
    root = Path(shutil.copytree(golden_store(f"{name}/store"), tmp_path / "store"))
    lines = expected(name)
    ends = [line["physicalOffset"] + line["size"] for line in lines if "size" in line and line["topic"] != "Compacted"]
    folders = [root / folder for folder in SETTINGS[name].get("commit_log_paths", "commitlog").split(",")]

    def log() -> bytes:
        paths = sorted((path for folder in folders for path in folder.iterdir()), key=lambda path: path.name)
        return b"".join(path.read_bytes() for path in paths)

    before = log()
    paths = {"commit_log_paths": SETTINGS[name].get("commit_log_paths", "")}
    with RunningWriter(root, commit_log_segment_size_bytes=16_384, **paths) as writer:
        info = writer.info()
        assert info.recovered_end_offset >= max(ends)
        kept = info.recovered_end_offset - info.min_physical_offset
        for line in lines:
            if line["kind"] == "queue" and not line["topic"].startswith("%"):
                answer = writer.append(line["topic"], wire_batch((b"x", b"", 0)), queue_id=line["queueId"])
                assert answer.queue_offset == line["max"], line
    assert log()[:kept] == before[:kept]


def test_a_compacted_topic_is_served_from_the_log(golden_store: GoldenStore, tmp_path: Path) -> None:
    """Its sparse queue and compaction log are neither read nor changed."""
    root = Path(shutil.copytree(golden_store("extension/store"), tmp_path / "store"))
    compaction = {path: path.read_bytes() for path in (root / "compaction").rglob("*") if path.is_file()}
    assert len(compaction) == 3
    build(plan_of(root, consume_queue_file_size_bytes=400, index_slots=100))
    with serve_query(root, index_slots=100, index_entries=400) as client:
        answer = client.get("/v1/topics/Compacted/queues/0/messages?offset=0").json()
    assert [message["queue_offset"] for message in answer["messages"]] == list(range(15))
    assert {path: path.read_bytes() for path in compaction} == compaction


def test_a_queue_with_only_pre_blank_units_is_continued(tmp_path: Path) -> None:
    """A queue that was initialised at 100 is opened again: the first message is number 100, and is the minimum."""
    write_log(tmp_path / "commitlog", 4096, [{"queue_offset": 100, "topic": b"T", "queue_id": 0}])
    folder = tmp_path / "consumequeue" / "T" / "0"
    folder.mkdir(parents=True)
    blank = bytes(8) + b"\x7f\xff\xff\xff" + bytes(8)
    (folder / f"{0:020d}").write_bytes((blank * 100).ljust(4000, b"\0"))
    for batch in (tmp_path / "batchconsumequeue", tmp_path / "index"):
        batch.mkdir()
    builder = ConsumeQueueBuilder(MappedFileQueue(folder, 4000, DiskStorage()), mark=1)
    assert builder._next == 100
    build(plan_of(tmp_path, index_slots=10, consume_queue_file_size_bytes=4000))
    reader = StoreReader(tmp_path)
    assert reader.bounds(reader.queue("T", 0), reader.watermark())[:2] == (100, 101)
    assert (folder / f"{0:020d}").read_bytes()[:2000] == blank * 100


@pytest.fixture(scope="module", params=sorted(SETTINGS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=["the broker's queues", "rebuilt queues"])
def client(
    request: pytest.FixtureRequest, name: str, golden_store: GoldenStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    """REST over the store as the broker left it (only the marks are Tidemark's), and as the pipeline builds it."""
    root = tmp_path_factory.mktemp("features") / name
    if request.param == "rebuilt queues":
        build(plan_of(without_derived(golden_store(f"{name}/store"), root), **SETTINGS[name]))
    else:
        shutil.copytree(golden_store(f"{name}/store"), root)
        marks = Marks.open_to_write(root / "tidemark" / "indexer" / "marks", DiskStorage(), shards=1, term=0)
        marks.publish(0, max(line["physicalOffset"] + line["size"] for line in expected(name) if "size" in line))
        marks.close()
    paths = {"commit_log_paths": SETTINGS[name].get("commit_log_paths", "")}
    with serve_query(root, index_slots=100, index_entries=400, **paths) as opened:
        yield opened


def place(line: dict[str, Any]) -> str:
    return f"/v1/topics/{line['topic'].replace('%', '%25')}/queues/{line['queueId']}"


def pull(client: httpx.Client, line: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = client.get(
        f"{place(line)}/messages", params={"max_messages": 500, "body_encoding": "utf8", **arguments}
    ).json()
    return answer


def test_every_queue_has_the_bounds_of_the_broker(client: httpx.Client, name: str) -> None:
    """Minimum and maximum are compared, also of light queues; all of them are listed."""
    topics = {topic["topic"] for topic in client.get("/v1/topics").json()["topics"]}
    for line in expected(name):
        if line["kind"] == "queue":
            told = client.get(place(line)).json()
            assert (told["min_offset"], told["max_offset"]) == (line["min"], line["max"]), line
            assert line["topic"] in topics


def test_every_message_equals_that_of_the_broker(client: httpx.Client, name: str) -> None:
    """Queue offset, body, flags, properties, place and id are compared, for any magic, hosts and CRC of the record.

    A compacted topic's messages came from the broker's compaction log: their places and CRCs are of that log.
    """
    compared = 0
    for queue in (line for line in expected(name) if line["kind"] == "queue" and line["max"] > line["min"]):
        answer = pull(client, queue, offset=queue["min"])
        assert answer["skipped"] == []
        is_compacted = queue["topic"] == "Compacted"
        ours = [values_of(message, is_compacted) for message in answer["messages"]]
        assert ours == [
            broker_values_of(line, is_compacted)
            for line in expected(name)
            if line["kind"] == "message" and place(line) == place(queue)
        ]
        compared += len(ours)
    assert compared > 100


def values_of(message: dict[str, Any], is_compacted: bool) -> list[Any]:
    known = {"TAGS": message["tag"], "KEYS": " ".join(message["keys"])}
    properties = {name: value for name, value in {**known, **message["properties"]}.items() if value}
    values = [message["queue_offset"], message["body"], message["sys_flag"]]
    if is_compacted:
        return [*values, {key: value for key, value in properties.items() if key != "__CRC32#"}]
    return [*values, properties, message["physical_offset"], message["offset_msg_id"]]


def broker_values_of(line: dict[str, Any], is_compacted: bool) -> list[Any]:
    values = [line["queueOffset"], line["body"], line["sysFlag"]]
    if is_compacted:
        return [*values, {key: value for key, value in line["properties"].items() if key != "__CRC32#"}]
    return [*values, line["properties"], line["physicalOffset"], line["msgId"]]


@pytest.mark.parametrize("semantics", ["", "rocketmq"])
def test_every_pull_by_tag_equals_that_of_the_broker(client: httpx.Client, name: str, semantics: str) -> None:
    """Some units have plain tag codes, others point into the extension."""
    for line in expected(name):
        if line["kind"] != "pull":
            continue
        bounds = client.get(place(line)).json()
        offset, found = bounds["min_offset"], []
        while offset < bounds["max_offset"]:
            arguments = {"semantics": semantics} if semantics else {}
            answer = pull(client, line, offset=offset, tag=line["tags"], **arguments)
            found += [message["physical_offset"] for message in answer["messages"]]
            assert answer["next_offset"] > offset
            offset = answer["next_offset"]
        units = {
            other["queueOffset"]: other["physicalOffset"]
            for other in expected(name)
            if other["kind"] == "message" and place(other) == place(line)
        }
        assert found == [units[queue_offset] for queue_offset in line["queueOffsets"]], line
