"""TopicTable: the topics of the store, stored in `config/topics.json`. Lives on the event loop.

A topic is durable before its first record. A deleted topic leaves a tombstone, and its queue offsets are not reused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import structlog

from tidemark.errors import (
    ArgumentIllegalError,
    TopicExistsError,
    TopicForbiddenError,
    TopicNotFoundError,
)
from tidemark.format.dispatch_request import U8Array
from tidemark.format.primitives import MAX_TOPIC_SIZE_BYTES
from tidemark.format.tags import MAX_DELAY_LEVEL, SCHEDULE_TOPIC
from tidemark.format.topic_name import FORBIDDEN_TOPICS
from tidemark.store.originals.tombstones import Tombstone, load_tombstones, save_tombstones
from tidemark.store.originals.topics import (
    QUEUE_TYPE,
    SIMPLE_QUEUE,
    TopicConfig,
    attributes_to_alter,
    attributes_to_create,
    load_config,
    load_topics,
    save_topics,
)
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

from ..batch.record_encoder import u8
from .topic_names import require_topic_name, usual_queues

log = structlog.get_logger()

MAX_QUEUES = 1024
_ALL_PERMISSIONS = 7  # PermName: read, write, inherit


class WritableTopic(NamedTuple):
    """A topic, and its encoded name as in records: length (one byte) and name."""

    config: TopicConfig
    field: U8Array


def topic_of(config: TopicConfig) -> WritableTopic:
    """Return *config* with the bytes of its name."""
    name = config.name.encode()
    return WritableTopic(config, u8((len(name) & 0xFF).to_bytes(1, "big") + name))


class Alteration(NamedTuple):
    """A change of a topic. None: unchanged; attributes: with RocketMQ's signs (+ sets, - removes)."""

    read_queues: int | None = None
    write_queues: int | None = None
    permission: int | None = None
    attributes: Mapping[str, str] = {}


class TopicTable:
    """The table of all topics. Changes are made one at a time, and are durable before they are visible.

    share: waits until the replicas have a change, too; None without replication
    """

    def __init__(
        self,
        paths: StorePaths,
        storage: Storage,
        *,
        auto_create: bool,
        default_queues: int,
        share: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._path = paths.topics
        self._tombstones_path: Path = paths.tombstones
        self._storage = storage
        self._share = share
        self._auto_create = auto_create
        self._default_queues = default_queues
        self._topics = {name: topic_of(config) for name, config in load_topics(paths.topics).items()}
        version = (load_config(paths.topics) or {}).get("dataVersion") or {}
        self._counter = int(version.get("counter", 0))
        self._dead_ends = {stone.topic: stone.physical_offset for stone in load_tombstones(paths.tombstones)}
        self._changing = asyncio.Lock()
        has_batches = any(topic.config.is_batch for topic in self._topics.values())
        self.batch_changes = int(has_batches or bool(self._dead_ends))  # rises if a topic of batches comes or goes

    def dead_end(self, name: str) -> int:
        """Return the physical offset below which the topic's records are dead; 0 if it was never deleted.

        Safe from any thread: it reads one entry of a dict.
        """
        return self._dead_ends.get(name, 0)

    def get(self, name: str) -> WritableTopic | None:
        """Return the topic; None if it does not exist."""
        return self._topics.get(name)

    def all(self) -> list[TopicConfig]:
        """Return all topics, sorted by name."""
        return [self._topics[name].config for name in sorted(self._topics)]

    def require(self, name: str) -> TopicConfig:
        """Return the topic's configuration. Raises TopicNotFoundError."""
        topic = self._topics.get(name)
        if topic is None:
            raise TopicNotFoundError(f"topic {name!r} does not exist", topic=name)
        return topic.config

    def expect(self, name: str, *, create: bool = False) -> WritableTopic:
        """Return the topic, or the one that a first message will create.

        *create*: the first message creates the topic even if auto_create_topics is off.
        Raises TopicIllegalError, TopicForbiddenError, or TopicNotFoundError if no message will create it.
        """
        topic = self._topics.get(name)
        if topic is None:
            require_topic_name(name)
            if not (self._auto_create or create):
                raise TopicNotFoundError(
                    f"topic {name!r} does not exist, and this writer does not create topics automatically "
                    "(TIDEMARK_AUTO_CREATE_TOPICS): create it first",
                    topic=name,
                )
            count = usual_queues(name, self._default_queues)
            topic = topic_of(TopicConfig(name, count, count))
        elif len(name) > MAX_TOPIC_SIZE_BYTES or name in FORBIDDEN_TOPICS:
            require_topic_name(name)
        return topic

    async def ensure(self, name: str) -> None:
        """Create the topic that `expect` returned, if it still does not exist."""
        if name not in self._topics:
            with contextlib.suppress(TopicExistsError):  # another caller created it in another shape
                await self.create(name, queues=0, attributes={})

    async def ensure_schedule(self) -> None:
        """Create the topic of delayed messages if it is missing, with one queue per level as in RocketMQ."""
        async with self._changing:
            if SCHEDULE_TOPIC not in self._topics:
                await self._add(TopicConfig(SCHEDULE_TOPIC, MAX_DELAY_LEVEL, MAX_DELAY_LEVEL))

    async def create(self, name: str, *, queues: int, attributes: Mapping[str, str]) -> tuple[TopicConfig, bool]:
        """Create the topic, and return it and whether it is new. queues: 0 for the default.

        Raises TopicExistsError if it exists in another shape, TopicAttributeError, TopicIllegalError,
        TopicForbiddenError or ArgumentIllegalError.
        """
        require_topic_name(name)
        if not 0 <= queues <= MAX_QUEUES:
            raise ArgumentIllegalError(
                f"queue_count is {queues}, and must be 1 to {MAX_QUEUES}, or 0 for the default",
                argument="queue_count",
                limit=MAX_QUEUES,
            )
        stored = attributes_to_create(attributes)
        async with self._changing:
            existing = self._topics.get(name)
            if existing is not None:
                _require_same(existing.config, queues, stored)
                return existing.config, False
            count = queues or usual_queues(name, self._default_queues)
            config = TopicConfig(name, count, count, attributes=stored)
            await self._add(config)
            return config, True

    async def _add(self, config: TopicConfig) -> None:
        await self._save({**self._configs(), config.name: config})
        self._topics[config.name] = topic_of(config)
        self.batch_changes += config.is_batch
        log.info("topic_created", topic=config.name, queues=config.queues, attributes=config.attributes)

    async def alter(self, name: str, alteration: Alteration) -> TopicConfig:
        """Change the topic durably and return its new configuration.

        Raises TopicNotFoundError, TopicForbiddenError, ArgumentIllegalError or TopicAttributeError.
        """
        async with self._changing:
            before = self.require(name)
            if name in FORBIDDEN_TOPICS:
                raise TopicForbiddenError(f"topic {name} is internal and cannot be altered", topic=name)
            after = _altered(before, alteration)
            if after != before:
                await self._save({**self._configs(), name: after})
                self._topics[name] = topic_of(after)
                log.info(
                    "topic_altered",
                    topic=name,
                    read_queues=after.read_queues,
                    write_queues=after.write_queues,
                    permission=after.permission,
                    attributes=after.attributes,
                )
            return after

    async def delete(self, name: str, take_ends: Callable[[], Awaitable[tuple[int, dict[int, int]]]]) -> None:
        """Delete the topic. *take_ends* returns the log's end and the topic's next offsets after its last batch.

        Raises TopicNotFoundError or TopicForbiddenError.
        """
        async with self._changing:
            self.require(name)
            if name == SCHEDULE_TOPIC:
                raise TopicForbiddenError(
                    f"topic {name} cannot be deleted, because delayed messages may be waiting in it", topic=name
                )
            topic = self._topics.pop(name)  # from now on no batch for it is admitted
            try:
                physical_offset, next_offsets = await take_ends()
                kept = [stone for stone in load_tombstones(self._tombstones_path) if stone.topic != name]
                stones = [*kept, Tombstone(name, physical_offset, next_offsets)]
                await _to_its_end(partial(save_tombstones, self._tombstones_path, stones, self._storage))
                self._dead_ends[name] = physical_offset
                await self._save(self._configs())
            except BaseException:
                self._topics[name] = topic
                raise
            self.batch_changes += topic.config.is_batch
            log.info("topic_deleted", topic=name, physical_offset=physical_offset)

    def _configs(self) -> dict[str, TopicConfig]:
        return {name: topic.config for name, topic in self._topics.items()}

    async def _save(self, configs: Mapping[str, TopicConfig]) -> None:
        self._counter += 1
        await _to_its_end(partial(save_topics, self._path, configs, self._storage, counter=self._counter))
        if self._share is not None:
            await self._share()


async def _to_its_end(change: Callable[[], None]) -> None:
    """Run *change* in a thread. A cancelled caller continues until its next wait: the table must follow the files.

    Otherwise the next change would begin while the thread still writes the same files.
    """
    working = asyncio.ensure_future(asyncio.to_thread(change))
    is_cancelled = False
    while not working.done():
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled and (task := asyncio.current_task()) is not None:
        task.cancel()
    working.result()


def _altered(config: TopicConfig, alteration: Alteration) -> TopicConfig:
    read_queues, write_queues, permission, attributes = alteration
    for argument, count in (("read_queue_count", read_queues), ("write_queue_count", write_queues)):
        if count is not None and not 1 <= count <= MAX_QUEUES:
            raise ArgumentIllegalError(
                f"{argument} is {count}, and must be 1 to {MAX_QUEUES}", argument=argument, limit=MAX_QUEUES
            )
    if permission is not None and not 0 <= permission <= _ALL_PERMISSIONS:
        raise ArgumentIllegalError(
            f"permission is {permission}, and must be a sum of 4 (read), 2 (write) and 1 (inherit)",
            argument="permission",
        )
    return config._replace(
        read_queues=config.read_queues if read_queues is None else read_queues,
        write_queues=config.write_queues if write_queues is None else write_queues,
        permission=config.permission if permission is None else permission,
        attributes=attributes_to_alter(config.attributes, attributes),
    )


def _require_same(config: TopicConfig, queues: int, attributes: Mapping[str, str]) -> None:
    same_queues = queues in (0, config.write_queues)
    default = {QUEUE_TYPE: SIMPLE_QUEUE}
    if not same_queues or {**default, **config.attributes} != {**default, **attributes}:
        raise TopicExistsError(
            f"topic {config.name!r} exists with {config.write_queues} queues and queue.type "
            f"{config.attributes.get(QUEUE_TYPE, SIMPLE_QUEUE)}, which differs from the requested topic",
            topic=config.name,
            queues=config.write_queues,
            queue_type=config.attributes.get(QUEUE_TYPE, SIMPLE_QUEUE),
        )
