"""Checker: opens a state of the disk as the services do, and checks every promise (docs/guarantees.md)."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from services.writer.config import WriterSettings
from services.writer.log.open_store import open_store, release_store
from tests.pipeline_runs import build, queue_files
from tidemark.errors import StoreError
from tidemark.index.ledger import read_ledger
from tidemark.store.originals.consumer_offsets import load_consumer_offsets
from tidemark.store.originals.tombstones import load_tombstones
from tidemark.store.originals.topics import load_topics
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage
from tidemark.v1 import commit_log_pb2 as pb

from .in_process import InProcessWriter
from .pipeline import drain, plan_of
from .promises import Place, Promises, Sent
from .reading import Readers, Seen
from .stored import Message, stored_messages
from .tree import read_tree

AFTERWARDS = 1000  # numbers of the batches that the checker sends itself


class Checker:
    """Checks states of the store at *root*. lossy: an unsynced end may be lost (async mode, power cut)."""

    def __init__(self, root: Path, scratch: Path, **settings: Any) -> None:
        self.root = root
        self.paths = StorePaths(root)
        self._scratch = scratch
        self._given = settings
        self._settings = WriterSettings(store_root=root, min_free_disk_bytes=0, default_queues=1, **settings)
        self._rebuilt: dict[bytes, dict[str, bytes]] = {}
        self._seen: set[object] = set()
        self.recovered_messages: list[Message] = []  # of the last check, before its own appends

    def check(self, promises: Promises, *, lossy: bool = False, build_first: bool = True) -> None:
        """Check all promises; raise AssertionError for a broken one, or the services' error at opening."""
        early = self._look()
        end = self._recover_twice()
        messages = self.recovered_messages = stored_messages(self.root)
        self._check_log(messages, promises, lossy=lossy)
        self._check_early(early, messages, promises, lossy=lossy, end=end)
        self._check_small_files(promises)
        recovered = (*self._recovered_key(), promises.key(), build_first)
        if recovered in self._seen:  # another crash led to the same state: the following checks were already made
            return
        self._seen.add(recovered)
        if build_first:
            with InProcessWriter(self.root, **self._given):
                drain(self.root)
                self._check_indexed(messages)
        self._go_on(messages, promises)

    def _recovered_key(self) -> tuple[object, ...]:
        """Return a key that is equal for stores that are the same after recovery, except for the writer's term."""
        ours = {"abort", "tidemark/writer/batches"}
        return tuple((path, data) for path, data in read_tree(self.root).files.items() if path not in ours)

    # -- before recovery ----------------------------------------------------------------------------------------------

    def _look(self) -> tuple[int, dict[str, list[Seen]]]:
        """Return the readers' view before any recovery."""
        with contextlib.closing(Readers(self.root)) as readers:
            return readers.watermark.physical_offset, {topic: readers.pulled(topic)[0] for topic in readers.topics}

    def _check_early(
        self,
        early: tuple[int, dict[str, list[Seen]]],
        messages: list[Message],
        promises: Promises,
        *,
        lossy: bool,
        end: int,
    ) -> None:
        """Check that all of it was sent, and that it equals the log without a gap up to the watermark."""
        watermark, by_topic = early
        assert lossy or watermark <= end, f"the watermark was {watermark}, the log ends at {end}"
        for topic, seen in by_topic.items():
            for one in seen:
                number, index = (int(part) for part in one.body.split(b":", 2)[:2])
                assert promises.sent[number].body(index) == one.body, f"a reader got {one.body!r}"
            if not lossy or watermark <= end:
                kept = [m for m in self._living(messages, topic) if m.physical_offset < watermark]
                shown = [one for one in seen if one.physical_offset >= self._dead_end(topic)]
                assert shown == _as_seen(kept), f"{topic} below the watermark {watermark}"

    def _dead_end(self, topic: str) -> int:
        stones = load_tombstones(self.paths.tombstones)
        return max((stone.physical_offset for stone in stones if stone.topic == topic), default=0)

    def _living(self, messages: Iterable[Message], topic: str) -> list[Message]:
        dead_end = self._dead_end(topic)
        return [m for m in messages if m.topic == topic and m.physical_offset >= dead_end]

    def _recover_twice(self) -> int:
        """Return the log's end; a second recovery must change nothing."""
        ends, contents = [], []
        for _ in range(2):
            store = open_store(self._settings, DiskStorage())
            release_store(store)
            assert store.recovered.damages == [], store.recovered.damages
            ends.append(store.recovered.end)
            contents.append({path.name: path.read_bytes() for path in sorted(self.paths.commit_log.iterdir())})
        assert ends[0] == ends[1] and contents[0] == contents[1], "recovery is not idempotent"
        for name, data in contents[0].items():
            assert not any(data[max(0, ends[0] - int(name)) :]), "bytes past the log's end are not zero"
        return ends[0]

    # -- the log ------------------------------------------------------------------------------------------------------

    def _check_log(self, messages: list[Message], promises: Promises, *, lossy: bool) -> None:
        """Check acknowledged ⊆ stored ⊆ sent, each once, whole, in order, at the acknowledged place."""
        by_number: dict[int, list[Message]] = {}
        for message in messages:
            by_number.setdefault(message.number, []).append(message)
        for number, parts in by_number.items():
            sent = promises.sent.get(number)
            assert sent is not None, f"batch {number} was never sent"
            _check_whole(sent, parts)
        for number, place in promises.acknowledged.items():
            parts = by_number.get(number, [])
            if not parts and promises.expiring and place.end_offset <= self._log_min():
                continue
            if not parts:
                assert lossy and place.end_offset > promises.flushed, f"acknowledged batch {number} is lost"
            else:
                stored = (parts[0].queue_offset, parts[0].physical_offset)
                assert stored == place[:2], f"batch {number} is not at its acknowledged place"
        for number, parts in by_number.items():
            for earlier in promises.before[number] & by_number.keys():
                assert by_number[earlier][0].physical_offset <= parts[0].physical_offset, "order"
        self._check_dense(messages)

    def _check_dense(self, messages: list[Message]) -> None:
        for topic in {message.topic for message in messages}:
            row = [message for message in messages if message.topic == topic]
            expected = row[0].queue_offset if self._log_min() else 0
            for message in row:
                starts_anew = message.physical_offset >= self._dead_end(topic) > 0 and message.queue_offset > expected
                assert message.queue_offset == expected or starts_anew, f"queue offsets of {topic} are not dense"
                expected = message.queue_offset + 1

    def _log_min(self) -> int:
        return min((int(path.name) for path in self.paths.commit_log.iterdir()), default=0)

    def _check_small_files(self, promises: Promises) -> None:
        topics = load_topics(self.paths.topics)
        assert promises.created <= topics.keys(), "a created topic is missing"
        assert not promises.deleted & topics.keys(), "a deleted topic exists again"
        table = load_consumer_offsets(self.paths.consumer_offsets)
        for (group, topic, queue_id), values in promises.offsets.items():
            assert table.get(f"{topic}@{group}", {}).get(queue_id, -1) in values, "a consumer's offset is wrong"

    # -- derived files ------------------------------------------------------------------------------------------------

    def _check_indexed(self, messages: list[Message]) -> None:
        """Check that everything committed is visible, and that the incremental result equals a rebuild's."""
        with contextlib.closing(Readers(self.root)) as readers:
            self._check_readers(readers, messages)

    def _check_readers(self, readers: Readers, messages: list[Message]) -> None:
        mark = readers.watermark
        assert mark.physical_offset == mark.committed_offset, "a committed message is not visible"
        assert read_ledger(self.paths.indexer) == [], "a crash was reported as damage"
        living = set(load_topics(self.paths.topics))
        built = {path: data for path, data in queue_files(self.root).items() if path.split("/")[1] in living}
        if self._log_min() == 0:  # otherwise files contain units of expired records that a rebuild leaves blank
            assert built == self._rebuild(mark.physical_offset, living), "queue files differ from a rebuild's"
        for topic in living & {message.topic for message in messages}:
            row = self._living(messages, topic)
            assert readers.pulled(topic) == (_as_seen(row), 0), f"the pulled messages of {topic} differ from the log's"
            for key in {key for message in row for key in message.keys[1:]}:
                wanted = {message.number for message in row if key in message.keys}
                found = [one for one in readers.found(topic, key) if one.physical_offset >= self._dead_end(topic)]
                assert found == _as_seen(m for m in row if m.number in wanted), (
                    f"the messages with key {key} in {topic} differ from the log's"
                )

    def _rebuild(self, end: int, living: set[str]) -> dict[str, bytes]:
        """Build the living topics' queue files from nothing but the log, topics.json and the tombstones."""
        digest = hashlib.blake2b(repr((end, sorted(living))).encode())
        sources = [*sorted(self.paths.commit_log.iterdir()), self.paths.tombstones]
        for path in sources:
            digest.update(path.read_bytes() if path.exists() else b"")
        key = digest.digest()
        if key not in self._rebuilt:
            shutil.rmtree(self._scratch, ignore_errors=True)
            for path in (*sources, self.paths.topics):
                if path.exists():
                    target = self._scratch / path.relative_to(self.root)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, target)
            build(dataclasses.replace(plan_of(self._scratch), limit=end))
            files = queue_files(self._scratch)
            self._rebuilt[key] = {path: data for path, data in files.items() if path.split("/")[1] in living}
        return self._rebuilt[key]

    # -- further appends ----------------------------------------------------------------------------------------------

    def _go_on(self, messages: list[Message], promises: Promises) -> None:
        """Repeat unanswered batches, and send a new batch to each topic: each is there once, at the next number."""
        stored = {message.number for message in messages}
        topics = load_topics(self.paths.topics)
        unanswered = [
            sent
            for number, sent in sorted(promises.sent.items())
            if number not in promises.acknowledged and sent.topic in topics
        ]
        new = [
            Sent(AFTERWARDS + i, topic, 2, inner=config.is_batch) for i, (topic, config) in enumerate(topics.items())
        ]
        with InProcessWriter(self.root, **self._given) as writer:
            for sent in [*unanswered, *new]:
                (answer,) = writer.append(sent.request())
                assert not isinstance(answer, StoreError), answer
                is_repeat = sent.number in stored
                assert answer.duplicate == is_repeat, f"a repeat of batch {sent.number}"
                if is_repeat:
                    first = next(message for message in messages if message.number == sent.number)
                    assert (answer.queue_offset, answer.physical_offset) == (first.queue_offset, first.physical_offset)
                promises.sent[sent.number] = sent
                promises.before.setdefault(sent.number, frozenset())
                promises.acknowledged[sent.number] = _place_of(answer)
            after = stored_messages(self.root)
            self._check_log(after, promises, lossy=True)
            assert {sent.number for sent in (*unanswered, *new)} <= {message.number for message in after}
            drain(self.root)
            self._check_indexed(after)


def _place_of(answer: pb.AppendBatchResponse) -> Place:
    return Place(answer.queue_offset, answer.physical_offset, answer.end_physical_offset)


def _as_seen(messages: Iterable[Message]) -> list[Seen]:
    return [Seen(message.queue_offset, message.physical_offset, message.body) for message in messages]


def _check_whole(sent: Sent, parts: list[Message]) -> None:
    """Check all messages of the batch: each once, contiguous, with the sent bytes."""
    assert [part.part for part in parts] == list(range(sent.messages)), f"batch {sent.number} is not whole"
    assert [part.body for part in parts] == [sent.body(i) for i in range(sent.messages)]
    assert {(part.topic, part.queue_id) for part in parts} == {(sent.topic, 0)}
    first = parts[0].queue_offset
    assert [part.queue_offset for part in parts] == list(range(first, first + sent.messages))
