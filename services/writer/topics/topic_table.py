"""TopicTable: the topics of this store, as `config/topics.json` has them. Lives on the event loop.

A topic is durable before its first record. A deleted topic leaves a tombstone; its queue numbers go on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
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


class Topic(NamedTuple):
    """A topic and its bytes as records carry them: length (one byte) and name."""

    config: TopicConfig
    field: U8Array


def topic_of(config: TopicConfig) -> Topic:
    """Return *config* with the bytes of its name."""
    name = config.name.encode()
    return Topic(config, u8((len(name) & 0xFF).to_bytes(1, "big") + name))


class Alteration(NamedTuple):
    """What of a topic is to become another; None: it stays. attributes: with their signs."""

    read_queues: int | None = None
    write_queues: int | None = None
    permission: int | None = None
    attributes: Mapping[str, str] = {}


class TopicTable:
    """All topics. Changes are made one at a time, and are on disk before anybody sees them."""

    def __init__(self, paths: StorePaths, storage: Storage, *, auto_create: bool, default_queues: int) -> None:
        self._path = paths.topics
        self._tombstones_path: Path = paths.tombstones
        self._storage = storage
        self._auto_create = auto_create
        self._default_queues = default_queues
        self._topics = {name: topic_of(config) for name, config in load_topics(paths.topics).items()}
        version = (load_config(paths.topics) or {}).get("dataVersion") or {}
        self._counter = int(version.get("counter", 0))
        self._dead_ends = {stone.topic: stone.physical_offset for stone in load_tombstones(paths.tombstones)}
        self._changing = asyncio.Lock()

    def dead_end(self, name: str) -> int:
        """Return the physical offset below which the topic's records are dead; 0 if it was never deleted.

        Safe from any thread: it reads one entry of a dict.
        """
        return self._dead_ends.get(name, 0)

    def get(self, name: str) -> Topic | None:
        """The topic; None when there is none."""
        return self._topics.get(name)

    def all(self) -> list[TopicConfig]:
        """Every topic, by name."""
        return [self._topics[name].config for name in sorted(self._topics)]

    def require(self, name: str) -> TopicConfig:
        """The topic's configuration, or TopicNotFoundError."""
        topic = self._topics.get(name)
        if topic is None:
            raise TopicNotFoundError(f"there is no topic {name!r}", topic=name)
        return topic.config

    def expect(self, name: str, *, create: bool = False) -> Topic:
        """Return the topic, or the one that a first message will create.

        *create*: also where topics are not created by their first message.
        Raises TopicIllegalError, TopicForbiddenError, or TopicNotFoundError where none is created.
        """
        topic = self._topics.get(name)
        if topic is None:
            require_topic_name(name)
            if not (self._auto_create or create):
                raise TopicNotFoundError(f"there is no topic {name!r}", topic=name)
            count = usual_queues(name, self._default_queues)
            topic = topic_of(TopicConfig(name, count, count))
        elif len(name) > MAX_TOPIC_SIZE_BYTES or name in FORBIDDEN_TOPICS:
            require_topic_name(name)
        return topic

    async def ensure(self, name: str) -> None:
        """Create the topic that `expect` described, if it still does not exist."""
        if name not in self._topics:
            with contextlib.suppress(TopicExistsError):  # made meanwhile, in another shape
                await self.create(name, queues=0, attributes={})

    async def ensure_schedule(self) -> None:
        """Let the topic of delayed messages be there: a queue a level, as the peer makes it."""
        async with self._changing:
            if SCHEDULE_TOPIC not in self._topics:
                await self._add(TopicConfig(SCHEDULE_TOPIC, MAX_DELAY_LEVEL, MAX_DELAY_LEVEL))

    async def create(self, name: str, *, queues: int, attributes: Mapping[str, str]) -> tuple[TopicConfig, bool]:
        """(the topic, whether it is new). queues: 0 for the default.

        raises TopicExistsError when there is one of another shape; TopicAttributeError, TopicIllegalError
        """
        require_topic_name(name)
        if not 0 <= queues <= MAX_QUEUES:
            raise ArgumentIllegalError(
                f"a topic has 1 to {MAX_QUEUES} queues", argument="queue_count", limit=MAX_QUEUES
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
        log.info("topic_created", topic=config.name, queues=config.queues, attributes=config.attributes)

    async def alter(self, name: str, alteration: Alteration) -> TopicConfig:
        """Change the topic, durably; what it is then.

        raises TopicNotFoundError, TopicForbiddenError, ArgumentIllegalError, TopicAttributeError
        """
        async with self._changing:
            before = self.require(name)
            if name in FORBIDDEN_TOPICS:
                raise TopicForbiddenError("this topic keeps its shape", topic=name)
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
        """Delete the topic. *take_ends* tells the log's end and the topic's next offsets once nothing more comes.

        raises TopicNotFoundError, TopicForbiddenError
        """
        async with self._changing:
            self.require(name)
            if name == SCHEDULE_TOPIC:
                raise TopicForbiddenError("messages may be waiting in this topic", topic=name)
            topic = self._topics.pop(name)  # from here on nothing is admitted
            try:
                physical_offset, next_offsets = await take_ends()
                kept = [stone for stone in load_tombstones(self._tombstones_path) if stone.topic != name]
                stones = [*kept, Tombstone(name, physical_offset, next_offsets)]
                await asyncio.to_thread(save_tombstones, self._tombstones_path, stones, self._storage)
                self._dead_ends[name] = physical_offset
                await self._save(self._configs())
            except BaseException:
                self._topics[name] = topic
                raise
            log.info("topic_deleted", topic=name, physical_offset=physical_offset)

    def _configs(self) -> dict[str, TopicConfig]:
        return {name: topic.config for name, topic in self._topics.items()}

    async def _save(self, configs: Mapping[str, TopicConfig]) -> None:
        self._counter += 1
        await asyncio.to_thread(save_topics, self._path, configs, self._storage, counter=self._counter)


def _altered(config: TopicConfig, alteration: Alteration) -> TopicConfig:
    read_queues, write_queues, permission, attributes = alteration
    for argument, count in (("read_queue_count", read_queues), ("write_queue_count", write_queues)):
        if count is not None and not 1 <= count <= MAX_QUEUES:
            raise ArgumentIllegalError(f"a topic has 1 to {MAX_QUEUES} queues", argument=argument, limit=MAX_QUEUES)
    if permission is not None and not 0 <= permission <= _ALL_PERMISSIONS:
        raise ArgumentIllegalError("permission has the bits 4, 2 and 1", argument="permission")
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
            f"topic {config.name!r} exists in another shape",
            topic=config.name,
            queues=config.write_queues,
            queue_type=config.attributes.get(QUEUE_TYPE, SIMPLE_QUEUE),
        )
